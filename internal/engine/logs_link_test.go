package engine_test

import (
	"os"
	"testing"

	"perflab/internal/engine"
	"perflab/internal/engine/logs"
)

func TestMain(m *testing.M) {
	engine.ClassOf = func(engineName, log string) (string, bool) {
		f, ok := logs.Diagnose(engineName, log)
		return f.Class, ok
	}
	engine.RefusalOf = func(engineName, log string) (string, bool) {
		f, ok := logs.Diagnose(engineName, log)
		for _, c := range logs.FailureClasses() {
			if c.Name == f.Class && c.Kind == logs.Refused {
				return f.Line, ok
			}
		}
		return "", false
	}
	os.Exit(m.Run())
}
