package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"
)

// component is one of a bill of materials, as CycloneDX has them.
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

// bill is a bill of materials: CycloneDX 1.6.
type bill struct {
	Format   string `json:"bomFormat"`
	Spec     string `json:"specVersion"`
	Version  int    `json:"version"`
	Metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	} `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type dependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn"`
}

// materials writes what a program is linked from, by its own account (go version -m): its modules
// and Go's standard library.
func materials(w io.Writer, program, version string, at time.Time) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(billOf(info, version, at), "", " ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

func billOf(info *debug.BuildInfo, version string, at time.Time) bill {
	module := func(kind, path, version string) component {
		purl := fmt.Sprintf("pkg:golang/%s@%s", path, version)
		return component{kind, purl, path, version, purl}
	}
	b := bill{Format: "CycloneDX", Spec: "1.6", Version: 1}
	b.Metadata.Timestamp = at.Format(time.RFC3339)
	b.Metadata.Component = module("application", info.Main.Path, version)
	b.Components = []component{module("library", "stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Components = append(b.Components, module("library", m.Path, m.Version))
	}
	all := dependency{Ref: b.Metadata.Component.Ref}
	for _, c := range b.Components {
		all.On = append(all.On, c.Ref)
	}
	b.Dependencies = []dependency{all}
	return b
}
