package scenarios

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"persistencelab/probeimage/wire"
)

// Services: stores that live outside a scenario's disposable containers. A
// file says what a scenario needs, a database or a bucket; which real engine
// that is, the person at the command line may decide. Where a store is that is
// up somewhere, only that person says, on the command line or in a variable
// that is there for nothing else: a file is handed around, and must neither
// hold a password nor reach a machine its author chose.

// ServiceKind says what a store keeps.
type ServiceKind string

// Service kinds.
const (
	Database ServiceKind = "database" // rows and keys
	Bucket   ServiceKind = "bucket"   // objects
)

// Service is a store of a scenario: it runs before the first step, is no
// target of a step that does not name it, and keeps its data in a volume of
// its own.
type Service struct {
	Pos        Position
	Name       string
	Kind       ServiceKind
	Image      string // an image of a store people run: postgres:17; "" for the lab's own
	AddressEnv string // the environment variable with the URL of one that is up somewhere
	Volume     string // the named volume it keeps its data in; "" for its writable layer
	Limit      int    // bytes the lab's own database may keep; 0 for no limit
	Number     int    // from 0: its place among the scenario's services

	addressKind ServiceKind // what AddressEnv is the address of
}

// ServiceData is where a service's volume is mounted in it.
const ServiceData = "/data"

// Item kinds of services.
const (
	Row    ItemKind = "row"    // Rows rows in the collection (table) Path of a database
	Key    ItemKind = "key"    // a value under the key Path of a database
	Object ItemKind = "object" // an object in a bucket; Path is bucket/key
)

// InService tells whether an item is kept in a service.
func (i Item) InService() bool {
	return i.Kind == Row || i.Kind == Key || i.Kind == Object || i.Kind == Agent && i.Service != ""
}

// ServiceKind is the kind of service an item needs; "" for none.
func (i Item) ServiceKind() ServiceKind {
	switch i.Kind {
	case Row, Key, Agent:
		return Database
	case Object:
		return Bucket
	}
	return ""
}

var (
	addressVar = rule{re: regexp.MustCompile(`^\$LAB_[A-Z0-9_]{1,60}$`), want: "an environment variable that begins with $LAB_ and holds the address", example: "$LAB_STORE"}
	imageText  = rule{re: regexp.MustCompile(`^[a-z0-9](?:[a-z0-9._/-]|:[0-9a-zA-Z]){0,198}$`), want: "an image's name", example: "docker.io/library/postgres:17"}
	tableText  = rule{re: regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`), want: "a name of small letters, digits and -", example: "notes", fix: slug}
	objectText = rule{re: regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}/[A-Za-z0-9][A-Za-z0-9._-]{0,60}$`), want: "bucket/key", example: "notes/monday.txt"}
)

// serviceItemKinds are the rows of the table of data items that a service
// keeps.
func serviceItemKinds() []itemKind {
	text := func(what string, r rule) func(d *decoder, n *yaml.Node) (string, bool) {
		return func(d *decoder, n *yaml.Node) (string, bool) { return d.text(n, what, r) }
	}
	return []itemKind{
		{Row, "rows in this table of a database service", text("row", tableText), tableText.schema(), []string{"rows", "service"}},
		{Key, "a value under this key of a database service", text("key", itemName), itemName.schema(), []string{"size", "service"}},
		{Object, "an object in a bucket service: bucket/key", text("object", objectText), objectText.schema(), []string{"size", "service"}},
	}
}

func serviceFields() []field[Service] {
	return []field[Service]{
		must(wordField("kind", "what it keeps: database for rows and keys, bucket for objects", []string{string(Database), string(Bucket)}, func(s *Service, w string) { s.Kind = ServiceKind(w) })),
		textField("image", "a store people run, by image: postgres, redis, valkey or minio; without: the lab's own", imageText, func(s *Service) *string { return &s.Image }),
		addressField("dsn", Database, "a database that is up somewhere: the variable, like $LAB_STORE, that holds postgres://USER:PASSWORD@HOST/DB, redis://… or nats://…"),
		addressField("endpoint", Bucket, "an S3 server that is up somewhere: the variable that holds https://KEY:SECRET@HOST"),
		textField("volume", "the volume it keeps its data in; none for its writable layer; without: one of its own name", objName, func(s *Service) *string { return &s.Volume }),
		sizeField("limit", "how much the lab's own database may keep, like 256KiB", 1, func(s *Service) *int { return &s.Limit }),
	}
}

// addressField is the variable that says where a store of that kind is.
func addressField(name string, kind ServiceKind, doc string) field[Service] {
	return field[Service]{name: name, doc: doc, schema: addressVar.schema(), read: func(d *decoder, n *yaml.Node, s *Service) {
		variable, ok := d.text(n, name, addressVar)
		if !ok {
			return
		}
		s.AddressEnv, s.addressKind = variable[1:], kind
	}}
}

// maxServices bounds the stores of one scenario: each is a process.
const maxServices = 4

func servicesField() field[draft] {
	kind := schema{"enum": []any{string(Database), string(Bucket)}}
	return field[draft]{name: "services", doc: "stores outside the containers: name → database, bucket, or more about it",
		schema: schema{"type": "object", "propertyNames": schema{"pattern": tableText.re.String()},
			"additionalProperties": schema{"anyOf": []any{kind, objectSchema(serviceFields())}}},
		read: func(d *decoder, n *yaml.Node, s *draft) {
			for _, e := range d.entries(n, "services", "service") {
				name, ok := d.text(e.key, "a service's name", tableText)
				if !ok {
					continue
				}
				svc := Service{Pos: pos(e.key), Name: name, Volume: name, Number: len(s.Services)}
				if e.value.Kind == yaml.ScalarNode && e.value.Tag != "!!null" {
					w, _ := d.word(e.value, "service "+strconv.Quote(name), []string{string(Database), string(Bucket)})
					svc.Kind = ServiceKind(w)
				} else {
					readMap(d, e.value, "service "+strconv.Quote(name), serviceFields(), &svc)
				}
				switch {
				case svc.AddressEnv != "" && svc.Image != "":
					d.fault(e.key, "leave one of them out", "service %q has an address and an image", name)
				case svc.AddressEnv != "" && svc.Kind != "" && svc.Kind != svc.addressKind:
					d.fault(e.key, "write kind: "+string(svc.addressKind), "service %q is a %s, and its address is that of a %s", name, svc.Kind, svc.addressKind)
				}
				if svc.Volume == "none" {
					svc.Volume = ""
				}
				if s.Services = append(s.Services, svc); len(s.Services) == maxServices+1 {
					d.fault(e.key, "split it into several scenarios", "too many services: more than %d", maxServices)
				}
			}
		}}
}

// container is the service as a container of a variant: it can be killed,
// started, removed and run by its name.
func (s Service) container() Container {
	c := Container{Pos: s.Pos, Name: s.Name, Deferred: true, Service: &s}
	if s.Volume != "" {
		c.Mounts = []Mount{{Pos: s.Pos, Kind: VolumeMount, Source: s.Volume, Target: ServiceData}}
	}
	return c
}

// serviceItems fills in the service of items that name none, and reports
// items no service can keep.
func (d *decoder) serviceItems(s *Scenario) {
	for i := range s.Data {
		item := &s.Data[i]
		if !item.InService() {
			continue
		}
		var fit []string
		for _, svc := range s.Services {
			if svc.Kind == item.ServiceKind() {
				fit = append(fit, svc.Name)
			}
		}
		switch {
		case item.Service == "" && len(fit) == 1:
			item.Service = fit[0]
		case item.Service == "" && len(fit) == 0:
			d.fault(at(item.Pos), fmt.Sprintf("add services: {store: %s}", item.ServiceKind()), "item %q needs a %s, and services: has none", item.Name, item.ServiceKind())
		case item.Service == "":
			d.fault(at(item.Pos), "add service: "+strings.Join(fit, " or service: "), "item %q must say in which service", item.Name)
		case !slices.Contains(fit, item.Service):
			d.fault(d.find(item.Pos, "service", item.Service), suggest(item.Service, fit), "item %q is in no %s of services: %q", item.Name, item.ServiceKind(), item.Service)
		}
	}
	for _, svc := range s.Services {
		for _, v := range s.Variants {
			for _, c := range v.Containers {
				if name := wire.ServiceEnv(svc.Name); c.Env[name] != "" {
					d.fault(at(svc.Pos), "give one of them another name", "the variable %s says where service %q is, and is no setting", name, svc.Name)
					return
				}
				if c.Service == nil && (c.Name == svc.Name || c.Pod != "") {
					d.fault(at(svc.Pos), "give each a name of its own, and no pod", "a container named like service %q, or in a pod, can't be beside it", svc.Name)
					return
				}
			}
		}
	}
}

// serviceVerbs are the steps a service can be the target of.
var serviceVerbs = []string{"run", "stop", "start", "restart", "kill", "rm", "pause", "unpause"}

// instances replaces a container that has replicas by that many of it, each
// with the group's name and a number. What one mounts they all mount.
func instances(list []Container) []Container {
	var out []Container
	for _, c := range list {
		if c.Replicas < 2 {
			out = append(out, c)
			continue
		}
		for n := 1; n <= c.Replicas; n++ {
			one := c
			one.Group, one.Name = c.Name, fmt.Sprintf("%s-%d", c.Name, n)
			out = append(out, one)
		}
	}
	return out
}

// groups are the names under which several containers are one.
func groups(list []Container) []string {
	var out []string
	for _, c := range list {
		if c.Group != "" {
			out = append(out, c.Group)
		}
	}
	return slices.Compact(out)
}

// loadVerb is the row of the table of steps for a small load.
func loadVerb(items field[Step]) Verb {
	return Verb{Name: "load", Doc: "requests spread over the instances, each writing one numbered record of the items; meanwhile instances and services are killed or replaced", also: []string{"requests"},
		options: []field[Step]{items,
			must(intField("requests", "how many", 1, 100_000, func(s *Step) *int { return &s.Requests })),
			listField("kill", "killed in turn in the middle of the load, without a warning; an instance is then replaced, a service started again", objName, func(s *Step) *[]string { return &s.Kill }),
			listField("replace", "stopped, removed and run afresh one after the other, in the middle of the load", objName, func(s *Step) *[]string { return &s.Rolled }),
			intField("kills", "how many kills; without: one for each name in kill", 1, 1000, func(s *Step) *int { return &s.Kills }),
		}}
}

// Loaded are the instances requests are spread over.
func (v Variant) Loaded(s Step) []string { return v.Targets(Step{Verb: s.Verb}) }

// Members gives the containers a name stands for: a group's, or itself.
func (v Variant) Members(name string) []string {
	var out []string
	for _, c := range v.Containers {
		if c.Group == name {
			out = append(out, c.Name)
		}
	}
	if out == nil {
		out = []string{name}
	}
	return out
}

// load checks a load step.
func (sim *simulation) load(step Step, verb Verb) {
	verb.from = running
	for _, name := range sim.v.Loaded(step) {
		sim.require(step, verb, name)
	}
	known := append(containerNames(sim.v.Containers), groups(sim.v.Containers)...)
	for _, list := range [][]string{step.Kill, step.Rolled} {
		for _, name := range list {
			for _, member := range sim.v.Members(name) {
				c, ok := sim.v.Container(member)
				if !ok {
					sim.d.fault(at(step.Pos), suggest(name, known), "load names a container the scenario does not have: %q", name)
				} else if c.Deferred && c.Service == nil {
					sim.d.fault(at(step.Pos), "name an instance that runs from the start", "load can't kill the deferred container %q", name)
				}
			}
		}
	}
	for _, name := range step.Items {
		item, ok := sim.s.Item(name)
		if !ok {
			continue // reported as undefined
		}
		if item.Kind != Row && item.Kind != SQLite {
			sim.d.fault(at(step.Pos), "name row and sqlite items", "a load writes numbered records, and a %s has none: %q", item.Kind, name)
		}
		sim.written[name] = true
	}
	if len(step.Items) == 0 {
		sim.d.fault(at(step.Pos), "add items: [visits]", "load must say which items it writes")
	}
}
