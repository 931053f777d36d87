package experiment

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"persistencelab/lab/engine"
	"persistencelab/probeimage/wire"
	"persistencelab/scenarios"
)

// Services: the stores of a scenario, outside its containers.
//
// All containers of such a scenario share one network namespace, which has a
// loopback interface and nothing else; a container of the lab's own, the
// network, holds it, as a pod's infra container does. That works wherever
// containers work: rootless, without a bridge, without a port of the host. A
// store the user has somewhere, by address, is reached over the host's
// network, because that is where the address means something.

// Stores makes the images of scenarios with services, and says what was asked
// for instead of the lab's own stores.
type Stores struct {
	Probe ImageMaker // the probe with the clients of real stores
	Store func() (engine.Image, error)
	// Instead are the user's own stores by the name of the service: an image,
	// or an address (a URL with user and password).
	Instead map[string]string
	Getenv  func(string) string // the user's environment
}

// StoreError: what is to stand behind a service can't.
type StoreError struct {
	Scenario, Service string
	Kind              scenarios.ServiceKind
	Variable          string // the scenario names it for the address; "" if it is the user who named a store
	Err               error
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("scenario %s, service %s: %v", e.Scenario, e.Service, e.Err)
}
func (e *StoreError) Unwrap() error { return e.Err }

// networkName is the container that holds the scenario's network.
const networkName = "_network" // no container of a scenario can be called so

// readyTime bounds the wait for a store to take requests. PostgreSQL's first
// start takes three seconds on a quiet machine.
const readyTime = 60 * time.Second

// backing is the real store behind a service.
type backing struct {
	service scenarios.Service
	image   engine.Image // the lab's own; Archive is nil for one that must be there
	command []string
	env     map[string]string
	url     string // as the containers reach it, with user and password
	foreign bool   // it is somebody's, reached by address
	asked   bool   // for this run: it is not the scenario that names it
}

// storeKind is how a store people run is run: one row for each.
type storeKind struct {
	word    string // found in the image's name
	kind    scenarios.ServiceKind
	scheme  string
	user    string
	command func(port, password string) []string
	env     func(port, password string) map[string]string
}

func none(string, string) map[string]string { return nil }

func storeKinds() []storeKind {
	redis := func(program string) func(port, password string) []string {
		return func(port, password string) []string {
			return []string{program, "--port", port, "--bind", "127.0.0.1", "--dir", scenarios.ServiceData,
				"--requirepass", password, "--appendonly", "yes", "--appendfsync", "always"}
		}
	}
	return []storeKind{
		// The path of its data moved between images 17 and 18; PGDATA says it
		// for both.
		{"postgres", scenarios.Database, "postgres", "lab", nil, func(port, password string) map[string]string {
			return map[string]string{"POSTGRES_USER": "lab", "POSTGRES_PASSWORD": password, "PGPORT": port, "PGDATA": scenarios.ServiceData + "/pgdata"}
		}},
		{"redis", scenarios.Database, "redis", "default", redis("redis-server"), none},
		{"valkey", scenarios.Database, "redis", "default", redis("valkey-server"), none},
		{"minio", scenarios.Bucket, "http", "lab", func(port, _ string) []string {
			return []string{"server", scenarios.ServiceData, "--address", "127.0.0.1:" + port}
		}, func(_, password string) map[string]string {
			return map[string]string{"MINIO_ROOT_USER": "lab", "MINIO_ROOT_PASSWORD": password}
		}},
		{"versitygw", scenarios.Bucket, "http", "lab", func(port, _ string) []string {
			return []string{"--port", "127.0.0.1:" + port, "posix", scenarios.ServiceData}
		}, func(_, password string) map[string]string {
			return map[string]string{"ROOT_ACCESS_KEY": "lab", "ROOT_SECRET_KEY": password}
		}},
	}
}

// StoreNames are the words by which an image of a store is recognised.
func StoreNames() []string {
	var names []string
	for _, k := range storeKinds() {
		names = append(names, k.word)
	}
	return names
}

// firstPort is where services listen, one port each, in a network namespace
// that has nobody else in it.
const firstPort = 7001

// services decides what stands behind each service. What is missing is kept
// for the run, which is then skipped.
func (p *Plan) services(o PlanOptions) error {
	p.backings = map[string]*backing{}
	for _, svc := range p.Scenario.Services {
		b, err := p.backing(svc, o)
		if err != nil {
			e := &StoreError{Scenario: p.Scenario.Name, Service: svc.Name, Kind: svc.Kind, Err: err}
			if o.Stores.Instead[svc.Name] == "" {
				e.Variable = svc.AddressEnv
			}
			return e
		}
		p.backings[svc.Name] = b
		if b.foreign {
			p.network = "host"
		}
	}
	if len(p.backings) > 0 && p.network == "" {
		p.network = "container:" + p.name(networkName)
	}
	return nil
}

func (p *Plan) backing(svc scenarios.Service, o PlanOptions) (*backing, error) {
	b := &backing{service: svc}
	instead := o.Stores.Instead[svc.Name]
	b.asked = instead != ""
	if instead == "" && svc.AddressEnv != "" {
		if instead = o.Stores.Getenv(svc.AddressEnv); instead == "" {
			b.foreign = true
			p.missing = &engine.UnsupportedError{What: "service " + svc.Name, Needs: "its address: export " + svc.AddressEnv + "=" + AddressExample(svc.Kind)}
			return b, nil
		}
		if !strings.Contains(instead, "://") {
			return nil, fmt.Errorf("%s holds no address", svc.AddressEnv)
		}
	}
	if strings.Contains(instead, "://") {
		u, err := url.Parse(instead)
		if err != nil {
			return nil, errors.New("the address is no URL") // its words would repeat the password
		}
		want := scenarios.Database
		if u.Scheme == "http" || u.Scheme == "https" {
			want = scenarios.Bucket
		}
		if want != svc.Kind {
			return nil, fmt.Errorf("it is a %s, and %s:// is not one", svc.Kind, u.Scheme)
		}
		b.foreign, b.url = true, instead
		return b, nil
	}
	if instead == "" {
		instead = svc.Image
	}
	port, password := fmt.Sprint(firstPort+svc.Number), o.Nonce()
	at := func(scheme, user string) string {
		return fmt.Sprintf("%s://%s:%s@127.0.0.1:%s", scheme, user, password, port)
	}
	if instead != "" {
		for _, k := range storeKinds() {
			if !strings.Contains(instead, k.word) {
				continue
			}
			if k.kind != svc.Kind {
				return nil, fmt.Errorf("it is a %s, and %s is not one", svc.Kind, k.word)
			}
			b.image.Ref, b.url, b.env = instead, at(k.scheme, k.user), k.env(port, password)
			if k.command != nil {
				b.command = k.command(port, password)
			}
			return b, nil
		}
		return nil, fmt.Errorf("the lab knows how to run %s, and not %s", strings.Join(StoreNames(), ", "), instead)
	}
	img, err := o.Stores.Store()
	if err != nil {
		return b, p.lacks(err)
	}
	b.image, b.command = img, []string{string(svc.Kind)}
	b.env = map[string]string{"STORE_USER": "lab", "STORE_PASSWORD": password, "STORE_PORT": port}
	if svc.Limit > 0 {
		b.env["STORE_LIMIT"] = fmt.Sprint(svc.Limit)
	}
	b.url = at(map[scenarios.ServiceKind]string{scenarios.Database: "nats", scenarios.Bucket: "http"}[svc.Kind], "lab")
	return b, nil
}

// AddressExample is what the address of a store of that kind looks like.
func AddressExample(kind scenarios.ServiceKind) string {
	if kind == scenarios.Bucket {
		return "https://KEY:SECRET@HOST"
	}
	return "postgres://USER:PASSWORD@HOST/DB"
}

// lacks notes that the programs for services are not there: the plan can be
// shown, not run.
func (p *Plan) lacks(err error) error {
	p.missing = &engine.UnsupportedError{What: "a store", Needs: "its programs, which ./scripts/stores builds", Err: err}
	return nil
}

// withClients makes images with the probe that has the clients of stores; the
// plain one stands in where its program is missing.
func (p *Plan) withClients(o PlanOptions) ImageMaker {
	return func(extra *scenarios.Image) (engine.Image, error) {
		img, err := o.Stores.Probe(extra)
		if err != nil {
			_ = p.lacks(err)
			return o.Images(extra)
		}
		return img, nil
	}
}

// serviceEnv is where the containers find the services.
func (p *Plan) serviceEnv() map[string]string {
	env := map[string]string{}
	for name, b := range p.backings {
		env[wire.ServiceEnv(name)] = b.url
	}
	return env
}

// serviceSpec is a service's container as the engine is asked for it.
func (p *Plan) serviceSpec(c scenarios.Container, s *engine.ContainerSpec) {
	b := p.backings[c.Service.Name]
	s.Image, s.Command, s.Env = b.image.Ref, b.command, b.env
}

// networkSpec is the container that holds the network and asks the stores.
func (p *Plan) networkSpec() engine.ContainerSpec {
	network := ""
	if p.network == "host" {
		network = "host"
	}
	return engine.ContainerSpec{
		Name: p.name(networkName), Image: p.probe.Ref, Network: network,
		Labels: map[string]string{RunLabel: p.RunID}, Env: p.serviceEnv(),
	}
}

// startServices starts the network and every store, and waits until each
// takes requests.
func (r *runner) startServices(ctx context.Context) error {
	if r.plan.missing != nil {
		return r.plan.missing
	}
	if len(r.plan.backings) == 0 {
		return nil
	}
	for _, st := range r.plan.Steps {
		for _, on := range append([]string{st.On}, st.Kill...) {
			if b := r.plan.backings[on]; b != nil && b.foreign {
				return &engine.UnsupportedError{What: fmt.Sprintf("the step %s on service %s", st.Verb, on), Needs: "a store the lab runs, not one at an address"}
			}
		}
	}
	if err := r.eng.EnsureImage(ctx, r.plan.probe); err != nil {
		return fmt.Errorf("the image with the clients of stores: %w", err)
	}
	spec := r.plan.networkSpec()
	if err := r.note("container", spec.Name); err != nil {
		return err
	}
	id, err := r.eng.Create(ctx, spec)
	if err != nil {
		return err
	}
	l := &live{on: networkName, name: spec.Name, id: id}
	r.live[networkName] = l
	if err := r.eng.Start(ctx, id); err != nil {
		return err
	}
	if err := r.join(ctx, l); err != nil {
		return err
	}
	for _, svc := range r.plan.Scenario.Services {
		if r.plan.backings[svc.Name].foreign {
			continue
		}
		st := PlannedStep{Step: scenarios.Step{Verb: "run", On: svc.Name}, name: r.plan.name(svc.Name)}
		if err := r.create(ctx, st); err != nil {
			return fmt.Errorf("service %s: %w", svc.Name, err)
		}
		if err := r.eng.Start(ctx, r.live[svc.Name].id); err != nil {
			return fmt.Errorf("service %s: %w", svc.Name, err)
		}
	}
	for _, svc := range r.plan.Scenario.Services {
		began := r.env.Now()
		if err := r.awaitService(ctx, svc.Name); err != nil {
			return err
		}
		for _, c := range r.plan.collections(svc.Name) {
			if err := r.note(Collection, c.made()); err != nil {
				return err
			}
		}
		if l := r.live[svc.Name]; l != nil {
			if _, err := r.look(ctx, l); err != nil {
				return err
			}
		}
		r.rec.Services = append(r.rec.Services, ServiceRecord{
			Name: svc.Name, Store: r.plan.backings[svc.Name].words(), Ready: r.env.Now().Sub(began),
		})
	}
	return nil
}

// mustHaveImage makes sure that the image of somebody's store is there. What
// is fetched from where is the user's to say.
func (r *runner) mustHaveImage(ctx context.Context, b *backing) error {
	if b.foreign {
		return nil
	}
	_, err := r.eng.ImageID(ctx, b.image.Ref)
	var missing *engine.NotFoundError
	switch {
	case errors.As(err, &missing) && b.asked:
		return &fault{fmt.Errorf("service %s: the image is not here: podman pull %s", b.service.Name, b.image.Ref)}
	case errors.As(err, &missing):
		return &engine.UnsupportedError{What: "service " + b.service.Name, Needs: "its image: podman pull " + b.image.Ref, Err: err}
	}
	return err
}

// words say what a service is, without its password.
func (b *backing) words() string {
	u, err := url.Parse(b.url)
	if b.foreign && err == nil {
		return u.Redacted()
	}
	return b.image.Ref
}

// awaitService waits until a store takes requests. One that does not let the
// lab in will not change its mind.
func (r *runner) awaitService(ctx context.Context, name string) error {
	limit := readyTime
	if r.plan.backings[name].foreign {
		limit = 2 * time.Second // it is up already, or it is not
	}
	deadline := r.env.Now().Add(limit)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		reply, err := r.live[networkName].session.client.Call(ctx, wire.Request{Op: wire.Ping, Item: &wire.Item{Service: name}})
		if err != nil {
			return &fault{fmt.Errorf("service %s: %w", name, err)}
		}
		if reply.Error == nil {
			return nil
		}
		words := &fault{fmt.Errorf("service %s does not take requests: %w", name, reply.Error)}
		if reply.Error.Code == wire.CodeDenied || !r.env.Now().Before(deadline) {
			return words
		}
		if l := r.live[name]; l != nil {
			if d, err := r.eng.Inspect(ctx, l.id); err == nil && d.State == "exited" {
				return &fault{fmt.Errorf("service %s ended with exit code %d; what it says: podman logs %s", name, d.ExitCode, l.name)}
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// serviceItem is an item as it is called in its store: under this plan's
// name, so that it can be nobody else's.
func (p *Plan) serviceItem(it scenarios.Item) scenarios.Item {
	switch {
	case it.Kind == scenarios.Key:
		it.Path = p.name("keys") + "/" + it.Path
	case it.InService():
		it.Path = p.name(it.Path)
	}
	return it
}

// services are the podman lines that start the network and the services
// and wait for them.
func (w *shellWriter) services() []string {
	if len(w.plan.backings) == 0 {
		return nil
	}
	spec := w.plan.networkSpec()
	network := "none"
	if spec.Network != "" {
		network = spec.Network
	}
	args := []string{w.shell.Podman, "run", "-d", "-i", "--name", quote(spec.Name), "--label", RunLabel + "=" + w.plan.RunID, "--network", network}
	args = append(args, w.shell.RunFlags...)
	args = append(args, w.env(spec.Env)...)
	lines := []string{strings.Join(append(args, quote(spec.Image)), " ")}
	for _, svc := range w.plan.Scenario.Services {
		if !w.plan.backings[svc.Name].foreign {
			lines = append(lines, w.run(PlannedStep{Step: scenarios.Step{Verb: "run", On: svc.Name}})...)
		}
	}
	for _, svc := range w.plan.Scenario.Services {
		lines = append(lines, fmt.Sprintf("until %s exec %s /probe ping %s; do sleep 0.2; done", w.shell.Podman, quote(spec.Name), svc.Name))
	}
	return lines
}

// load are the podman lines of a load: the requests one after the other, and
// what happens in their middle where it happens.
func (w *shellWriter) load(st PlannedStep) []string {
	lines := []string{fmt.Sprintf("# %d requests, spread over the instances; each of them, with N the request's number:", st.Requests)}
	for _, on := range w.plan.Variant.Loaded(st.Step) {
		for _, item := range st.Items {
			it := w.plan.items[item]
			line := fmt.Sprintf("# %s exec %s /probe write %s %s %s %s --rows 1 --seq N", w.shell.Podman, w.plan.name(on), item, it.Kind, it.Path, st.Nonces[item])
			if it.Service != "" {
				line += " --service " + it.Service
			}
			lines = append(lines, line)
		}
	}
	for _, name := range append(append([]string(nil), st.Kill...), st.Rolled...) {
		for _, on := range w.plan.Variant.Members(name) {
			lines = append(lines, "# meanwhile, from another terminal:")
			if w.plan.backings[on] != nil {
				lines = append(lines, fmt.Sprintf("# %[1]s kill %[2]s; %[1]s start %[2]s", w.shell.Podman, w.plan.name(on)))
			} else {
				lines = append(lines, fmt.Sprintf("# %s rm -f -t 0 %s; then run it as above", w.shell.Podman, w.plan.name(on)))
			}
		}
	}
	return lines
}

// env are the -e flags. The address of a store that is somebody's carries a
// password: it is taken from the environment of whoever types the line.
func (w *shellWriter) env(env map[string]string) []string {
	var args []string
	for _, k := range sortedKeys(env) {
		secret := false
		for name, b := range w.plan.backings {
			secret = secret || b.foreign && k == wire.ServiceEnv(name)
		}
		if secret {
			args = append(args, "-e", k)
		} else {
			args = append(args, "-e", quote(k+"="+env[k]))
		}
	}
	return args
}
