# make check is the gate: every commit passes it.
GO ?= go

.PHONY: check fmt vet fix lint test race race-core fuzz docs build release docs-site predict-accuracy calibration tune-science catalogue pages kube-control

check: fmt vet fix lint test

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/perflab ./cmd/perflab

# Everything that a release publishes, of the commit that is checked out, into dist: docs/release.md.
release:
	$(GO) run -trimpath ./scripts/release -out dist

fmt:
	@out=$$(gofmt -l cmd internal scripts); test -z "$$out" || { echo "gofmt: $$out"; exit 1; }

vet:
	$(GO) vet ./...

fix:
	@out=$$($(GO) fix -diff ./...); test -z "$$out" || { echo "$$out"; echo "go fix: run 'go fix ./...'"; exit 1; }

lint:
	$(GO) tool staticcheck ./...

# Not everything is tested under the race detector, which makes it several times as slow. A package
# that docs/architecture.md calls pure starts no goroutine (cmd/perflab/pure_test.go holds that). What
# has SQLite inside, the index and all that stands on it, would take minutes: `make race` has it too.
# Files that are not built under the detector (`//go:build !race`) have their tests run after it.
PURE = $$(sed -n 's/^| `\([^`]*\)` |.*Pure\. |.*/perflab\/internal\/\1/p' docs/architecture.md)
INDEXED = $$($(GO) list -test -f '{{if eq .Name "main"}}{{.ImportPath}} {{.Deps}}{{end}}' ./... | sed -n 's/\(\.test\)\{0,1\} .*modernc\.org\/sqlite.*//p')

test:
	@plain="$(PURE) $(INDEXED)"; \
	raced=$$($(GO) list ./... | grep -vxF "$$(printf '%s\n' $$plain)"); \
	$(GO) test -vet=off -race $$raced && $(GO) test $$plain && \
	files=$$(grep -rlx --include='*_test.go' '//go:build !race' $$(printf '%s\n' $$raced | sed 's/^perflab\///') --exclude-dir=testdata 2>/dev/null | sort -u) && \
	$(GO) test $$(dirname $$files | sort -u | sed 's/^/.\//') \
		-run "^($$(sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*/\1/p' $$files | paste -sd '|'))$$"

# Everything under the race detector: half an hour on two cores.
race:
	$(GO) test -race -timeout 60m ./...

# What continuous integration has time for of that: the way of each request, and what is shown live.
# What stands on the engines' machines, as the pages that launch, has too much to compile.
race-core:
	$(GO) test -vet=off -race ./internal/load ./internal/wire ./internal/openai ./internal/web/guard/... ./internal/web/runs/live

# Every Fuzz target of the readers, one after the other, each for FUZZTIME:
#   make fuzz FUZZTIME=10m
#   make fuzz FUZZPKG=./internal/interop FUZZ=ReadJSON
# It goes on after a target that fails, and names those that did at the end. What is
# found is below testdata/fuzz of the package: mend it and keep the file.
FUZZTIME ?= 30s
FUZZPKG ?= ./...
FUZZ ?=

fuzz:
	@failed=; \
	for dir in $$($(GO) list -f '{{.Dir}}' $(FUZZPKG)); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*$(FUZZ)[A-Za-z0-9_]*\)(f \*testing.F).*/\1/p' $$dir/*_test.go 2>/dev/null); do \
			echo "$$dir $$target"; \
			$(GO) test $$dir -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10s || failed="$$failed $$dir:$$target"; \
		done; \
	done; \
	test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

# Files generated from the code; a test compares them.
docs:
	$(GO) test ./internal/cli -run 'TestGenerated' -update
	$(GO) test ./internal/result -run 'TestMetricsReference' -update
	$(GO) test ./internal/interop/translate -run 'TestDocuments' -update
	$(GO) test ./internal/web -run 'TestOpenAPI' -update

# The documents as a site of static pages: bin/docs-site/index.html, or make docs-site SITE=DIR.
SITE ?= $(CURDIR)/bin/docs-site

docs-site:
	$(GO) test ./internal/test/docsite -count 1 -run 'TestSite$$' -out $(SITE)

# Accuracy of predictions against published blocks: ten minutes on two idle cores.
predict-accuracy:
	$(GO) test ./internal/calib -count 1 -timeout 60m -run 'TestAccuracy$$' -accuracy $(CURDIR)/docs/accuracy.md

# The same, and the calibration that is part of the program from its fits.
calibration:
	$(GO) test ./internal/calib -count 1 -timeout 60m -run 'TestAccuracy$$' -accuracy $(CURDIR)/docs/accuracy.md -calibration $(CURDIR)/internal/sim/calibration.json

# The flags of the engines' last two releases, read out of their wheels: about ten
# minutes, and the wheels' size of transfer. ALL=all reads every release of
# scripts/releases.json, ARGS=-update writes internal/engine/flags.json and
# the table of docs/catalogue.md.
CATALOGUE ?= $(CURDIR)/bin/catalogue

catalogue:
	python3 scripts/catalogue.py scripts/releases.json $(CATALOGUE) $(ALL)
	PERFLAB_CATALOGUE=$(CATALOGUE) $(GO) test ./internal/test/catalogue -count 1 -run 'TestReleases$$' -v $(ARGS)
	PERFLAB_CATALOGUE=$(CATALOGUE) $(GO) test ./internal/engine/logs -count 1 -run 'TestTexts$$' -v

# Strategies compared on simulated landscapes with a known optimum, drawn by seeds on which
# nothing is developed. ARGS=-update writes the tables into docs/tuning.md.
tune-science:
	$(GO) test ./internal/test/science -count 1 -timeout 180m -run 'TestScience$$' -v -science -first 100001 -seeds 20 $(ARGS)

# Pages in a real browser: three widths, light and dark, with JavaScript and without, and axe-core.
# PICTURES=DIR keeps a picture of each.
BROWSER ?= $(shell command -v chromium-headless-shell || command -v chromium || command -v google-chrome)

pages:
	PERFLAB_BROWSER=$(BROWSER) $(GO) test ./cmd/perflab -count 1 -run 'TestPages$$' -v -timeout 30m

# The control plane of Kubernetes that tests of the runtime kubernetes use: a quarter of an hour
# of a processor, once. PERFLAB_KUBE_CONTROL=bin/kube-control (as a full path) has tests find it.
KUBE_VERSION = k8s.io/component-base/version

kube-control:
	cd internal/test/kubetest/control && CGO_ENABLED=0 $(GO) build -trimpath -o $(CURDIR)/bin/kube-control \
		-ldflags "-s -w -X $(KUBE_VERSION).gitVersion=v1.37.2 -X $(KUBE_VERSION).gitMajor=1 -X $(KUBE_VERSION).gitMinor=37" .
