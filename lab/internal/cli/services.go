package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/experiment"
	"persistencelab/probeimage/image"
	"persistencelab/scenarios"
)

// storesDir is where the programs of the lab's own stores lie: beside the lab,
// where scripts/stores puts them, or where LAB_STORES says. They are larger
// than the lab, so it does not carry them.
func storesDir(env *Env) string {
	if d := env.Getenv("LAB_STORES"); d != "" {
		return d
	}
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return "stores"
	}
	return filepath.Join(filepath.Dir(self), "stores")
}

// serviceStores are what plans with services are made with. instead are the user's
// own stores, by the name of the service.
func serviceStores(env *Env, instead map[string]string) experiment.Stores {
	found := image.FindStores(storesDir(env), runtime.GOARCH)
	return experiment.Stores{
		Instead: instead, Getenv: env.Getenv,
		Probe: func(extra *scenarios.Image) (engine.Image, error) {
			ref, archive, err := found.BuildProbe(imageSpec(extra))
			return engine.Image{Ref: ref, Archive: archive}, err
		},
		Store: func() (engine.Image, error) {
			ref, archive, err := found.BuildStore()
			return engine.Image{Ref: ref, Archive: archive}, err
		},
	}
}

// serviceFlags reads --service NAME=STORE, and sees to it that each names a
// service of one of the scenarios.
func serviceFlags(flags []string, list []*scenarios.Scenario) (map[string]string, error) {
	instead := map[string]string{}
	for _, f := range flags {
		name, store, ok := strings.Cut(f, "=")
		if !ok || name == "" || store == "" {
			return nil, usagef("lab run external-database --service db=docker.io/library/postgres:17", "--service %q: the service's name, =, and an image or a URL", name)
		}
		known := slices.ContainsFunc(list, func(s *scenarios.Scenario) bool {
			return slices.ContainsFunc(s.Services, func(svc scenarios.Service) bool { return svc.Name == name })
		})
		if !known {
			return nil, usagef("lab show SCENARIO", "--service %s: no scenario that is run has a service of that name", name)
		}
		instead[name] = store
	}
	return instead, nil
}
