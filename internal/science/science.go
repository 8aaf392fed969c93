// Package science holds simulated landscapes with a known optimum, on which
// search strategies are compared: models, hardware, workloads and objectives,
// noise within and between launches, refusals, slow starts, predictions that are
// wrong. It runs in virtual time. Nothing of the product imports it.
package science
