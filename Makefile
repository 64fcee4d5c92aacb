# SPDX-License-Identifier: GPL-3.0-or-later
# `make demo` and `make test` do all their own set-up; they need git, make, python3 with venv, and a package index.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-all test-oldest fast slow ruff lint typing unit sanity docs-lint schemas messages grammar guide docs bench bench-balance browser clean \
	mutants picture peers peers-ganeti peers-ganeti-short peers-ironic peers-placement peers-prometheus peers-python peers-repart test-awx test-pull test-databases test-histories molecule on-devices test-roles test-roles-short test-lying-host test-ganeti test-libvirt test-dask test-loop test-vm test-foreign test-faults test-restart test-torn test-torn-short test-install test-installers test-unlock test-zfs test-vm-short bench-vm molecule-moves release fuzz lock

# Paths left in the environment would win over ansible.cfg and hide this checkout behind an installed copy.
unexport ANSIBLE_COLLECTIONS_PATH ANSIBLE_COLLECTIONS_PATHS ANSIBLE_LIBRARY ANSIBLE_INVENTORY PYTHONPATH
export ANSIBLE_CONFIG := ansible.cfg
export ANSIBLE_HOME := .ansible
export PATH := $(CURDIR)/.venv/bin:$(PATH)

BIN := .venv/bin
DEMO := .venv/installed-demo
USE := .venv/installed-use
DEVELOP := .venv/installed-develop
COLLECTION := ansible_collections/bareon/allocator
BENCH := PYTHONPATH=.venv/collections $(BIN)/python

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	"$${PYTHON:-$$(tests/utils/newest-python)}" -m venv .venv

# A first look waits for nothing that it does not need, nor for what it does not import to be compiled.
$(DEMO): requirements.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --prefer-binary 'ansible-core>=2.19' \
		$$(grep -E '^(highspy|numpy|yaql)\b' requirements.txt)
	tests/utils/link-collection
	@touch $@

$(USE): requirements.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'ansible-core>=2.19' --requirement requirements.txt
	tests/utils/link-collection
	@touch $(DEMO) $@

$(DEVELOP): requirements-dev.txt $(USE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements-dev.txt
	@touch $@

setup: $(DEVELOP) ## Make .venv with all that developing needs

demo: $(DEMO) ## Plan the disks of this machine and of a sample fleet, and balance a sample cluster; only plans
	@ANSIBLE_DISPLAY_OK_HOSTS=false $(BIN)/ansible-playbook --inventory localhost, playbooks/demo.yml
	@cat demo/plans.txt

test: ruff typing docs-lint fast ## What every change goes through, in minutes; PYTHON=python3.11 makes .venv by another Python than the newest

fast: $(DEVELOP) ## Tests that are fast, slow ones of the parts that changed, and of the others those whose turn it is by TEST_SEED, one in ten
	TEST_SHARE=10 $(BIN)/python -m pytest -n auto -q

test-all: lint typing docs-lint sanity unit test-oldest ## Everything that can be tested without servers, containers and VMs; by CI as well

test-oldest: ## What `make fast` tests, in a copy of the checkout with the oldest Python that the controller runs on
	tests/utils/copy-checkout .build/oldest
	$(MAKE) -C .build/oldest PYTHON="$$(tests/utils/oldest-python)" fast

slow: $(DEVELOP) ## Measure which tests are slow, and write tests/support/house/slow_tests.txt; half an hour
	rm -rf .build/costs
	mkdir -p .build/costs
	TEST_COSTS=.build/costs $(BIN)/python -m pytest -n auto -q
	$(BENCH) tests/support/house/slow_tests.py .build/costs

ruff: $(DEVELOP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint: ruff
	$(BIN)/yamllint --strict .
	$(BIN)/reuse --suppress-deprecation lint --quiet || { $(BIN)/reuse lint; exit 1; }
	$(BIN)/ansible-lint --profile production
	PYTHONPATH=.venv/collections $(BIN)/python tests/support/json_schemas.py --check

typing: $(DEVELOP)
	cd .venv/collections && ../bin/mypy --config-file ../../mypy.ini $(COLLECTION)/plugins

docs-lint: $(DEVELOP)
	$(BIN)/antsibull-changelog lint
	$(BIN)/antsibull-docs lint-collection-docs --plugin-docs --validate-collection-refs=all .

schemas: $(DEVELOP) ## Write docs/schemas, the JSON Schemas of profiles and other inputs, from the tables they are read with
	PYTHONPATH=.venv/collections $(BIN)/python tests/support/json_schemas.py

messages: $(DEVELOP) ## Write tests/unit/data/messages, the sentences that each room shows people
	$(BENCH) tests/support/house/messages.py

grammar: $(DEVELOP) ## Write the tables of the parser of expressions, as the installed YAQL computes them
	PYTHONPATH=.venv/collections $(BIN)/python tests/support/disk/grammar.py

guide: $(DEVELOP) ## Write what the guides show: docs/profile_matrix.md, all profiles on many machines, tables of docs/options.md, docs/playbooks.md, pictures
	$(BENCH) tests/support/host/options_guide.py
	$(BENCH) tests/support/disk/matrix.py
	$(BENCH) tests/support/disk/guide.py
	$(BENCH) tests/support/house/playbooks.py
	$(BENCH) tests/support/group/htools_differences.py

docs: $(DEVELOP) ## Make pages of the guides and the reference in .build/docs/html; any warning is a mistake
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement docs/site/requirements.txt
	rm -rf .build/docs
	mkdir -p .build/docs/source/collections
	chmod og-w .build/docs/source/collections
	git ls-files LICENSE '*.md' 'docs/*' 'playbooks/*' 'plugins/modules/*' | xargs cp --parents --target-directory .build/docs/source
	sed -e 's,\.\./\.\./,,g' -e 's,\.\./,docs/,g' docs/site/index.md >.build/docs/source/index.md
	sed -i -E 's,https://(github.com/bareon/allocator/blob|raw.githubusercontent.com/bareon/allocator)/main/,,g' .build/docs/source/README.md
	sed -i -E 's,https://github.com/bareon/allocator/blob/main/,../../,g' .build/docs/source/roles/*/README.md
	$(BIN)/antsibull-docs collection --use-current --fail-on-error --dest-dir .build/docs/source/collections --squash-hierarchy bareon.allocator
	$(BIN)/python -m sphinx -b html -q -W --keep-going -c docs/site .build/docs/source .build/docs/html

sanity: $(DEVELOP)
	tests/utils/sanity

unit: $(DEVELOP) ## Unit and property tests
	$(BIN)/python -m pytest -n auto -q

fuzz: $(DEVELOP) ## Read FUZZ_CALLS (20000) damaged inputs at every door and parser, then as many guided by coverage where atheris installs; an hour
	PYTHONPATH=.venv/collections $(BIN)/python tests/support/fuzz/run.py --calls $${FUZZ_CALLS:-20000} --seed $${FUZZ_SEED:-1}
	! $(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: 'atheris>=2.3' || \
		PYTHONPATH=.venv/collections $(BIN)/python tests/support/fuzz/run.py --coverage --calls $${FUZZ_CALLS:-20000} --seed $${FUZZ_SEED:-1}

lock: $(DEVELOP) ## Choose the newest packages for execution environments and releases, and write them with their hashes
	tests/utils/lock $(BIN)/python

mutants: $(DEVELOP) ## Break a hundred spots of the code by a seed, one at a time, and list those that no test notices
	$(BENCH) tests/utils/mutants.py --seed $${SEED:-1} --count $${COUNT:-100}

picture: $(DEVELOP) ## Draw the rooms of the code anew from the imports
	$(BENCH) tests/utils/draw_rooms.py

bench: $(DEVELOP) ## Measure the planners; figures as ratios within one run
	$(BENCH) tests/bench/startup.py
	$(BENCH) tests/bench/disk_plan.py
	$(BENCH) tests/bench/disk_placement.py
	$(BENCH) tests/bench/disk_fleet.py
	$(BENCH) tests/bench/disk_drift.py
	$(BENCH) tests/bench/disk_targets.py
	$(BENCH) tests/bench/group_load.py
	tests/utils/install-tools hbal:ganeti-htools
	OMP_NUM_THREADS=1 $(BENCH) tests/bench/group_place.py
	OMP_NUM_THREADS=1 $(BENCH) tests/bench/group_balance.py --large
	OMP_NUM_THREADS=1 $(BENCH) tests/bench/group_planning.py
	PYTHONPATH=.venv/collections "$$(tests/peers/placement-venv)" tests/bench/provider_candidates.py
	$(BENCH) tests/bench/provider_scale.py
	tests/database/install-servers
	$(BENCH) tests/bench/provider_claims.py
	PYTHONPATH=.venv/collections "$$(tests/peers/placement-venv)" tests/bench/provider_ledger.py

bench-balance: $(DEVELOP) ## Measure balancing beside hbal to its end, which takes it an hour of CPU
	tests/utils/install-tools hbal:ganeti-htools
	OMP_NUM_THREADS=1 $(BENCH) tests/bench/group_balance.py --full --large

browser: $(DEVELOP) ## Look at the report in headless Chromium, which is installed if need be
	tests/utils/install-tools chromium:chromium pdftoppm:poppler-utils
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement docs/site/requirements.txt
	$(BIN)/python -m pytest -q tests/browser

peers: peers-repart peers-ganeti peers-placement peers-ironic peers-python peers-prometheus ## Compare with all peers

peers-repart: $(DEVELOP) ## Compare plans for one disk with systemd-repart, and have it, Ignition, Nix and Ceph look at what is written for them
	tests/utils/install-tools systemd-repart:systemd ignition-validate:ignition nix-instantiate:nix-bin /usr/lib/python3/dist-packages/ceph/deployment:python3-ceph-common
	$(BIN)/python -m pytest -q tests/peers/test_systemd_repart.py tests/peers/test_installers.py

peers-prometheus: $(DEVELOP) ## Ask a real Prometheus, Debian's, for loads; it is installed if need be
	tests/utils/install-tools promtool:prometheus
	$(BIN)/python -m pytest -q tests/peers/test_prometheus.py

peers-ironic: $(DEVELOP) ## Have OpenStack Ironic read what is written for it
	$(BIN)/python -m pytest -q tests/peers/test_ironic.py

peers-placement: $(DEVELOP) ## Compare allocation candidates with OpenStack Placement, and its own HTTP tests with the ledger
	"$$(tests/peers/placement-venv)" -m pytest -q tests/peers/test_placement_candidates.py
	"$$(tests/peers/placement-venv)" -m pytest -q tests/peers/test_placement_export.py
	"$$(tests/peers/placement-venv)" -m pytest -q tests/peers/test_placement_gabbits.py

peers-python: $(DEVELOP) ## Compare plans of disks with those of the oldest Python that the collection runs on
	tests/peers/oldest-python-venv
	$(BIN)/python -m pytest -q tests/peers/test_oldest_python.py

peers-ganeti: $(DEVELOP) ## Compare groups with Debian's ganeti-htools, which are installed if need be
	tests/utils/install-tools hbal:ganeti-htools
	PEERS_SEEDS=$${PEERS_SEEDS:-60} $(BIN)/python -m pytest -q tests/peers/test_ganeti_*.py

peers-ganeti-short: $(DEVELOP) ## Of peers-ganeti what takes a few minutes: scores, placement and a few generated clusters
	tests/utils/install-tools hbal:ganeti-htools
	$(BIN)/python -m pytest -q tests/peers/test_ganeti_score.py tests/peers/test_ganeti_place.py tests/peers/test_ganeti_generated.py

test-awx: $(DEVELOP) ## Run jobs in an execution environment, as AWX starts them; installs what is missing, which needs root, on Debian
	tests/utils/install-tools podman:podman runc:runc mmdebstrap:mmdebstrap
	tests/database/install-servers
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement tests/awx/requirements.txt
	tests/molecule/environment tests/awx/build-image
	$(BIN)/python -m pytest -q tests/awx

test-pull: $(DEVELOP) ## Have TEST_PULL_HOSTS (50) containers pull their plans at once, each onto a loop device; needs root, on Debian
	tests/utils/install-tools podman:podman runc:runc mmdebstrap:mmdebstrap losetup:mount
	tests/molecule/environment tests/pull/build-image
	tests/molecule/environment $(BIN)/python -m pytest -q -s tests/pull

test-databases: $(DEVELOP) ## Test the ledger on real PostgreSQL, MariaDB and Galera servers, which are installed if need be
	tests/database/install-servers
	$(BIN)/python -m pytest -q tests/database

test-histories: $(DEVELOP) ## Compare TASKS (100000) random tasks of several controllers with a model in memory, on SQLite and on each server; hours
	tests/database/install-servers
	TEST_HISTORIES=$(or $(TASKS),100000) $(BIN)/python -m pytest -q -s tests/property/provider/test_histories.py tests/database/test_histories.py

molecule: $(DEVELOP) ## Test the roles in containers, on loop devices; installs what is missing, which needs root
	tests/molecule/set-up
	tests/molecule/environment $(BIN)/molecule test --all --exclude ganeti --report

test-ganeti: $(DEVELOP) ## Read, balance, drain and break a real Ganeti cluster of virtual nodes in namespaces of their own; needs root, on Debian
	tests/utils/install-tools mmdebstrap:mmdebstrap ip:iproute2 unshare:util-linux ssh-keygen:openssh-client
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement tests/molecule/requirements.txt
	trap 'tests/ganeti/down .build/ganeti' EXIT; tests/ganeti/up .build/ganeti && tests/ganeti/install-allocator .build/ganeti && \
		tests/ganeti/beside .build/ganeti $(BIN)/molecule test --scenario-name ganeti

on-devices: $(DEVELOP) ## Of what needs root and devices that which CI runs, one after the other
	$(if $(wildcard /dev/fuse),,@echo "NOT RUN, for want of /dev/fuse: make test-torn-short" >&2)
	+$(MAKE) --jobs=1 test-loop $(if $(wildcard /dev/fuse),test-torn-short) molecule

test-roles: $(DEVELOP) ## Carry moves out by the roles in every way, against stand-ins for clusters
	$(BIN)/python -m pytest -n auto -q tests/roles

test-roles-short: $(DEVELOP) ## Of test-roles what takes a minute
	$(BIN)/python -m pytest -q -m short tests/roles

test-lying-host: $(DEVELOP) ## Draw lies of a host against every playbook and both roles; DRAWS=20 for more of them
	TEST_LYING_HOST_DRAWS=$(or $(DRAWS),5) $(BIN)/python -m pytest -n auto -q tests/unit/test_lying_host.py

test-libvirt: $(DEVELOP) ## Read, balance, empty and silence nodes of a real libvirt with machines of QEMU, in namespaces of their own; needs root, on Debian
	tests/utils/install-tools libvirtd:libvirt-daemon virsh:libvirt-clients /usr/lib/x86_64-linux-gnu/libvirt/connection-driver/libvirt_driver_qemu.so:libvirt-daemon-driver-qemu \
		qemu-system-x86_64:qemu-system-x86 qemu-img:qemu-utils ip:iproute2 unshare:util-linux
	$(BIN)/python -m pytest -q tests/libvirt

test-dask: $(DEVELOP) ## Plan on a Dask cluster whose processes have an environment of their own; `make unit` has it in this one
	TEST_DASK_PYTHON="$$(tests/utils/dask-venv)" $(BIN)/python -m pytest -q tests/unit/plugins/plugin_utils/_common/test_parallel.py \
		tests/unit/plugins/action/test_group_balance_scale.py

test-loop: $(DEVELOP) ## Make planned layouts on loop devices; needs root
	tests/utils/install-tools losetup:mount partx:util-linux sfdisk:fdisk pvcreate:lvm2 cryptsetup:cryptsetup-bin \
		mkfs.vfat:dosfstools mkfs.ext4:e2fsprogs mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs mkfs.f2fs:f2fs-tools \
		clevis-luks-pass:clevis-luks jose:jose /usr/libexec/tangd:tang-common sgdisk:gdisk parted:parted mdadm:mdadm \
		/lib/systemd/system-generators/systemd-cryptsetup-generator:systemd-cryptsetup strace:strace \
		/usr/share/i18n/locales/tr_TR:locales sshd:openssh-server
	$(BIN)/python -m pytest -q tests/loop --ignore tests/loop/test_torn_runs.py --ignore tests/loop/test_unreadable.py \
		$$(tests/utils/oldest-host-python >/dev/null || echo --ignore tests/loop/test_oldest_python.py)

test-vm: $(DEVELOP) ## Make layouts with md, LUKS and LVM in Debian machines under QEMU, restart them, cut their power; the first build needs root
	tests/vm/build-image
	$(BIN)/python -m pytest -q tests/vm --ignore tests/vm/test_install.py --ignore tests/vm/test_installers.py --ignore tests/vm/test_torn.py --ignore tests/vm/test_unlock.py --ignore tests/vm/test_zfs.py --ignore tests/vm/test_foreign.py --ignore tests/vm/test_layout_faults.py

test-install: $(DEVELOP) ## Install Debian onto bare disks in machines under QEMU, by BIOS and UEFI, and start it from either disk; the first build needs root
	tests/utils/install-tools /usr/share/OVMF/OVMF_CODE_4M.fd:ovmf
	tests/vm/build-image
	tests/vm/build-system
	tests/vm/build-system trixie '' system-dracut
	$(BIN)/python -m pytest -q tests/vm/test_install.py

test-installers: $(DEVELOP) ## Have Ignition, FAI and systemd-repart make plans in a Debian machine under QEMU, and compare; the first build needs root
	tests/vm/build-image trixie .build/installers ignition,gdisk,fai-setup-storage,systemd-repart
	$(BIN)/python -m pytest -q tests/vm/test_installers.py

test-unlock: $(DEVELOP) ## Have a TPM, a Tang server and a key file open LUKS in a Debian machine under QEMU as it starts; the first build needs root
	tests/utils/install-tools swtpm:swtpm /usr/libexec/tangd:tang-common jose:jose
	tests/vm/build-image trixie .build/unlock clevis,clevis-luks,clevis-systemd,tpm2-tools
	$(BIN)/python -m pytest -q tests/vm/test_unlock.py

test-zfs: $(DEVELOP) ## Make ZFS pools in a Debian 12 machine under QEMU, with zfs-fuse, and restart it; the first build needs root
	tests/vm/build-image bookworm .build/zfs zfs-fuse
	TEST_MACHINES=.build/zfs TEST_MACHINE_SUITE=bookworm $(BIN)/python -m pytest -q tests/vm/test_zfs.py

test-foreign: $(DEVELOP) ## Have what people keep on disks outlive runs that do not name these, in machines: md, LVM, LUKS, bcache, exports; half an hour
	tests/utils/install-tools linux.uml:user-mode-linux debugfs:e2fsprogs cc:gcc /usr/include/dlfcn.h:libc6-dev
	tests/vm/build-image trixie .build/foreign bcache-tools,gdisk,multipath-tools
	TEST_MACHINES=.build/foreign $(BIN)/python -m pytest -q tests/vm/test_foreign.py

test-faults: $(DEVELOP) ## Have /run full or read-only, tools missing and two runs at once, in machines of Debian 13 and 12; the first build needs root
	tests/utils/install-tools linux.uml:user-mode-linux debugfs:e2fsprogs cc:gcc /usr/include/dlfcn.h:libc6-dev
	tests/vm/build-image
	tests/vm/build-image bookworm
	$(BIN)/python -m pytest -q tests/vm/test_layout_faults.py
	TEST_MACHINE_SUITE=bookworm $(BIN)/python -m pytest -q tests/vm/test_layout_faults.py

test-restart: $(DEVELOP) ## Of test-vm the least: volumes in LUKS on a mirror, made and back after a restart
	tests/vm/build-image
	$(BIN)/python -m pytest -q tests/vm/test_restart.py

test-torn: $(DEVELOP) ## Cut the power under runs of the role, in machines whose disks lose, reorder and tear what was not flushed; 240 cuts take hours
	tests/utils/install-tools sfdisk:fdisk linux.uml:user-mode-linux debugfs:e2fsprogs cc:gcc /usr/include/dlfcn.h:libc6-dev
	tests/vm/build-image
	TEST_TORN_SEEDS=$${TEST_TORN_SEEDS:-40} $(BIN)/python -m pytest -q tests/vm/test_torn.py

test-torn-short: $(DEVELOP) ## Some of such cuts on loop devices, without arrays, LUKS and LVM, and errors of reading; needs root and FUSE
	tests/utils/install-tools qemu-storage-daemon:qemu-system-common sfdisk:fdisk mkfs.ext4:e2fsprogs mkfs.btrfs:btrfs-progs
	$(BIN)/python -m pytest -q tests/loop/test_torn_runs.py tests/loop/test_unreadable.py

test-vm-short: $(DEVELOP) ## Of test-vm one profile with arrays, applied and restarted, and three power cuts
	tests/vm/build-image
	TEST_POWER_CUTS=3 $(BIN)/python -m pytest -q tests/vm/test_profiles.py tests/vm/test_power_cut.py -k 'software-raid-boot or sealed-0'

bench-vm: $(DEVELOP) ## Measure disk_layout on loop devices, and in a Debian machine beside the modules that everybody has
	$(BENCH) tests/bench/disk_layout_loop.py
	$(BIN)/python tests/utils/fetch-collections ansible.posix community.general
	tests/vm/build-image
	$(BENCH) tests/bench/disk_layout.py

molecule-moves: $(DEVELOP) ## Carry plans of moves out with commands and servers that stand in for clusters
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement tests/molecule/requirements.txt
	$(BIN)/molecule test --scenario-name group_moves

release: $(DEVELOP) ## VERSION=1.2.3: check what CI checks, write the release notes, commit, build the archives, tag; pushes nothing
	tests/utils/release "$(VERSION)"

clean: ## Remove all that make made here
	rm -rf .venv .build .ansible .mypy_cache .pytest_cache .ruff_cache .hypothesis demo
