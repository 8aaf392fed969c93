package agents

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"perflab/internal/result"
)

// Pods say where the pods of an engine ran, from which images and with which GPUs.
func Pods(pods []result.Pod) (nodes, images, gpus string) {
	var from, with []string
	for _, p := range pods {
		if p.Image != "" && !slices.Contains(from, p.Image) {
			from = append(from, p.Image)
		}
		with = append(with, p.GPUs...)
	}
	return result.PodsText(pods), strings.Join(from, ", "), strings.Join(with, ", ")
}

// SelfChecked says how far the client's figures were from a server's truth.
func SelfChecked(c *result.SelfCheck) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("stamps late by %.4g µs (p99 %.4g µs), mean TTFT off by %+.4g ms, p99 ITL by %+.4g ms, sends late by %.4g µs (p99 %.4g µs); "+
		"self-check of %s with %d streams at %.4g events/s, one core full at %.4g events/s",
		c.ArrivalP50, c.ArrivalP99, c.TTFTError, c.ITLError, c.SendP50, c.SendP99,
		c.Taken.Format(time.DateOnly), c.Streams, c.EventRate, c.MaxEvents)
}
