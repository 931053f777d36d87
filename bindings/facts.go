package bindings

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/containers/podman/v5/pkg/bindings/system"

	"persistencelab/lab/engine"
)

// Facts implements engine.Engine. Asking Podman costs a third of a second of
// processor time (4.3.1 asks the package manager for versions), so it is
// asked beside the run, and for a service on this machine the answer is
// remembered until the service, the machine or Podman's configuration changes.
func (p *Podman) Facts() engine.Facts {
	p.learnFacts()
	<-p.factsDone
	return p.facts
}

// learnFacts starts asking, once.
func (p *Podman) learnFacts() {
	p.factsOnce.Do(func() {
		go func() {
			defer close(p.factsDone)
			p.facts = p.askFacts()
		}()
	})
}

func (p *Podman) askFacts() engine.Facts {
	f := engine.Facts{}
	if p.host.Facts != nil {
		f = *p.host.Facts
	} else if f = p.askInfo(); f.StorageDriver != "" {
		told := f
		p.host.Facts = &told
		p.host.save()
	}
	f.Name, f.APIVersion, f.URL, f.Remote = "podman", p.version.String(), p.url, p.remote
	if f.Version == "" {
		f.Version = p.version.String()
	}
	f.Service, f.Adjusted = "found", p.adjusted
	if p.service != nil {
		f.Service = "started by the lab"
	}
	if !p.remote {
		f.BootID = bootID()
	}
	return f
}

func (p *Podman) askInfo() engine.Facts {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var f engine.Facts
	info, err := system.Info(p.ctx(ctx), nil)
	if err != nil {
		f.OS = "not told: " + err.Error()
		return f
	}
	f.Version = info.Version.Version
	if info.Host != nil {
		f.Rootless = info.Host.Security.Rootless
		f.SELinux = info.Host.Security.SELinuxEnabled
		f.Kernel = info.Host.Kernel
		f.Cgroups = info.Host.CgroupsVersion
		if !p.remote && hybridCgroups() {
			f.Cgroups += " (hybrid)"
		}
		f.OS = strings.TrimSpace(info.Host.Distribution.Distribution + " " + info.Host.Distribution.Version)
		if r := info.Host.OCIRuntime; r != nil {
			f.Runtime = strings.TrimSpace(r.Name + " " + runtimeVersion(r.Version))
		}
	}
	if info.Store != nil {
		f.StorageDriver = info.Store.GraphDriverName
	}
	return f
}

// runtimeVersion picks "1.1.5" out of "runc version 1.1.5+ds1\ncommit: …".
func runtimeVersion(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return ""
	}
	v, _, _ := strings.Cut(fields[len(fields)-1], "+")
	return v
}

// bootID is this machine's boot id (random(4)), "" where there is none.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// hybridCgroups tells whether this host mounts cgroup v1 controllers and the
// v2 tree side by side, which crun refuses (PODMAN_IGNORE_CGROUPSV1_WARNING
// and systemd's "hybrid" hierarchy).
func hybridCgroups() bool {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return false
	}
	var v1, v2 bool
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) > 2 {
			v1 = v1 || fields[2] == "cgroup"
			v2 = v2 || fields[2] == "cgroup2"
		}
	}
	return v1 && v2
}
