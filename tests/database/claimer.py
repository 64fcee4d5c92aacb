# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One process that claims one VCPU after the other from one provider until it is full.

Usage: claimer.py DATABASE PROVIDER [PROJECT]. Prints the UUID of each consumer as soon as its claim is granted, then `full`,
also where the quota of the project is used up; anything that goes wrong ends it with an error.
"""

from __future__ import annotations

import sys
import uuid

from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_plan import Claim, ClaimRefused
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.quotas import QuotaExceeded


def main(database, provider, project=None):
    with open_ledger(database) as ledger:
        while True:
            claim = Claim(str(uuid.uuid4()), {provider: {"VCPU": 1}}, project)
            try:
                make_claims(ledger, [claim])
            except ClaimRefused as error:
                reasons = {refusal["reason"] for refusal in error.conflict["refused"]}
                if reasons != {"full"}:
                    raise
                print("full", flush=True)
                return
            except QuotaExceeded:
                print("full", flush=True)
                return
            print(claim.consumer, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
