// SPDX-License-Identifier: GPL-3.0-or-later
// The theme has two asides without names, which screen readers list as the same.
const nameAsides = () => {
  for (const [shape, name] of [[".sidebar-drawer", "All pages"], [".toc-drawer", "This page"]])
    document.querySelector(shape)?.setAttribute("aria-label", name);
};
nameAsides();
document.addEventListener("DOMContentLoaded", nameAsides);
