# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From targets of instances to a plan that can be carried out, and its progress.

In come the places that instances are to have; out goes a `Plan`: moves, what each comes after, and stages whose moves may run
side by side, their steps in any order.

In reading order: order (a sequence in which each step keeps what a *guard* asks for: limits, and what shared storage keeps for
failures), turns (the same sequence, with later turns behind earlier ones), stages (as few as the limits allow), plain (a plan as the data
that actions return), picture (a package: the same to look at), steps (the model of a plan that is carried out), read (the plan from data),
progress (the steps that are done, and those that come next), kept (where a text lasts), journal (the text that remembers them), times (how
long plans take), links (what links take a second, as given or as journals say). Kinds of moves are those of Ganeti's hbal; seed 001 asks
for "a sequence of moves".
"""
