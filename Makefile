.PHONY: help run test bench deb image fix

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

run: ## build, and start a playground: three nodes on this machine, and a tour (ARGS=--auto runs through it)
	@scripts/run.sh $(ARGS)

test: ## format, lints, dependencies, documentation, all tests; ends with "N passed, N failed, N skipped"
	@scripts/test.sh

bench: ## measure a release build (takes minutes; prints a table)
	cargo build --locked --release -p kennel -p xtask
	target/release/xtask bench

deb: ## build a release, and a Debian package of it in target/packages
	@scripts/packages.sh build
	cargo build --locked --release -p kennel -p xtask
	target/release/xtask package deb

image: ## build a release, and an OCI image of it in target/packages (IMAGE=registry/name:tag)
	@scripts/packages.sh build
	cargo build --locked --release -p kennel -p xtask
	target/release/xtask package image $(if $(IMAGE),--name $(IMAGE))

fix: ## repair format and simple lints
	@scripts/fix.sh
