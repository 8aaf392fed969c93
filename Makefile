# make check is the gate: every commit passes it.
GO ?= go

.PHONY: check fmt vet fix lint test docs build predict-accuracy calibration tune-science

check: fmt vet fix lint test

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/perflab ./cmd/perflab

fmt:
	@out=$$(gofmt -l cmd internal); test -z "$$out" || { echo "gofmt: $$out"; exit 1; }

vet:
	$(GO) vet ./...

fix:
	@out=$$($(GO) fix -diff ./...); test -z "$$out" || { echo "$$out"; echo "go fix: run 'go fix ./...'"; exit 1; }

lint:
	$(GO) tool staticcheck ./...

test:
	$(GO) test -race ./...

# Files generated from the code; a test compares them.
docs:
	$(GO) test ./internal/cli -run 'TestGenerated' -update
	$(GO) test ./internal/result -run 'TestMetricsReference' -update

# Accuracy of predictions against published blocks: some minutes.
predict-accuracy:
	$(GO) test ./internal/calib -count 1 -timeout 60m -run 'TestAccuracy$$' -accuracy $(CURDIR)/docs/accuracy.md

# The same, and the calibration that is part of the program from its fits.
calibration:
	$(GO) test ./internal/calib -count 1 -timeout 60m -run 'TestAccuracy$$' -accuracy $(CURDIR)/docs/accuracy.md -calibration $(CURDIR)/internal/sim/calibration.json

# Strategies compared on simulated landscapes with a known optimum: some minutes.
# ARGS=-update writes the tables into docs/tuning.md.
tune-science:
	PERFLAB_SCIENCE=full $(GO) test ./internal/test/science -count 1 -timeout 60m -run 'TestScience$$' -v $(ARGS)
