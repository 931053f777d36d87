package matrix

import "persistencelab/scenarios"

// Kind is a way of giving a container a place to write: what `podman run` is
// told of it, and where the data is written.
type Kind struct {
	Name  string
	Doc   string // the arguments of podman run, for people
	Place string // where the data is written; "" for the memory of process 1

	mounts  []scenarios.Mount
	arrange func(*scenarios.Container) // what else is said of the container
	volume  *scenarios.Volume          // the named volume it needs, if any
	noName  bool                       // it comes with a volume without a name
	// source is another container it takes its volumes from, created only.
	source []scenarios.Mount
	// writer is a container that writes the data beforehand, where the one
	// looked at may only read.
	writer []scenarios.Mount
	// folder, when set, must be there first: a file in it is written by a
	// container with these mounts.
	folder       string
	folderMounts []scenarios.Mount
}

const (
	dataDir  = "/data"
	dataFile = "/data/token"
	seedFile = "/data/seed"
	volName  = "v"
	dirName  = "dir"
)

func vol(options ...string) scenarios.Mount {
	return scenarios.Mount{Kind: scenarios.VolumeMount, Source: volName, Target: dataDir, Options: options}
}

func bind(options ...string) scenarios.Mount {
	return scenarios.Mount{Kind: scenarios.Bind, Source: dirName, Target: dataDir, Options: options}
}

// Kinds lists the mount kinds in the order of the truth table.
func Kinds() []Kind {
	named := func() *scenarios.Volume { return &scenarios.Volume{Name: volName} }
	made := func(options map[string]string) *scenarios.Volume {
		return &scenarios.Volume{Name: volName, Create: true, Options: options}
	}
	user := func(c *scenarios.Container) { c.User = "1234:1234" }
	imageVolume := func(mode string) func(*scenarios.Container) {
		return func(c *scenarios.Container) { c.Image.Volumes, c.ImageVolume = []string{dataDir}, mode }
	}
	readOnly := func(tmpfs bool) func(*scenarios.Container) {
		return func(c *scenarios.Container) {
			c.ReadOnly = true
			if !tmpfs {
				c.ReadOnlyTmpfs = &tmpfs
			}
		}
	}
	list := func(m ...scenarios.Mount) []scenarios.Mount { return m }
	image := func(options ...string) []scenarios.Mount {
		return list(scenarios.Mount{Kind: scenarios.ImageMount, Source: "probe", Target: "/m", Options: options})
	}
	sub := vol()
	sub.Subpath = "sub"
	prepare := vol()
	prepare.Target = "/prepare"
	anonymous := scenarios.Mount{Kind: scenarios.Anonymous, Target: dataDir}
	long := func(kind scenarios.MountKind) scenarios.Mount {
		return scenarios.Mount{Kind: kind, Target: dataDir, Long: true}
	}

	return []Kind{
		{Name: "none", Doc: "nothing: the writable layer", Place: dataFile},
		{Name: "none-/tmp", Doc: "nothing: the writable layer", Place: "/tmp/token"},
		{Name: "none-/run", Doc: "nothing: the writable layer", Place: "/run/token"},
		{Name: "vol-precreated", Doc: "-v v:/data, after podman volume create v", Place: dataFile, mounts: list(vol()), volume: made(nil)},
		{Name: "vol-auto", Doc: "-v v:/data", Place: dataFile, mounts: list(vol()), volume: named()},
		{Name: "vol-nocopy", Doc: "-v v:/data:nocopy", Place: dataFile, mounts: list(vol("nocopy")), volume: named()},
		{Name: "vol-ro", Doc: "-v v:/data:ro", Place: dataFile, mounts: list(vol("ro")), volume: named()},
		{Name: "vol-U-user1234", Doc: "-v v:/data:U --user 1234:1234", Place: dataFile, mounts: list(vol("U")), volume: named(), arrange: user},
		{Name: "vol-subpath", Doc: "--mount type=volume,src=v,dst=/data,subpath=sub", Place: dataFile, mounts: list(sub), volume: made(nil), folder: "/prepare/sub/made", folderMounts: list(prepare)},
		{Name: "vol-opt-tmpfs", Doc: "-v v:/data, after podman volume create -o type=tmpfs -o device=tmpfs v", Place: dataFile, mounts: list(vol()), volume: made(map[string]string{"type": "tmpfs", "device": "tmpfs"})},
		{Name: "vol-opt-bind", Doc: "-v v:/data, after podman volume create -o type=none -o o=bind -o device=DIR v", Place: dataFile, mounts: list(vol()), volume: made(map[string]string{"type": "none", "o": "bind", "device": dirName})},
		{Name: "anon", Doc: "-v /data", Place: dataFile, mounts: list(anonymous), noName: true},
		{Name: "anon-mount", Doc: "--mount type=volume,dst=/data", Place: dataFile, mounts: list(long(scenarios.Anonymous)), noName: true},
		{Name: "imgvol", Doc: "nothing; the image says VOLUME /data", Place: dataFile, arrange: imageVolume(""), noName: true},
		{Name: "imgvol+named", Doc: "-v v:/data; the image says VOLUME /data", Place: dataFile, mounts: list(vol()), volume: named(), arrange: imageVolume("")},
		{Name: "imgvol-tmpfs", Doc: "--image-volume tmpfs; the image says VOLUME /data", Place: dataFile, arrange: imageVolume("tmpfs")},
		{Name: "imgvol-ignore", Doc: "--image-volume ignore; the image says VOLUME /data", Place: dataFile, arrange: imageVolume("ignore")},
		{Name: "bind", Doc: "-v DIR:/data", Place: dataFile, mounts: list(bind())},
		{Name: "bind-ro", Doc: "-v DIR:/data:ro, the data written by another", Place: dataFile, mounts: list(bind("ro")), writer: list(bind())},
		{Name: "bind-U-user1234", Doc: "-v DIR:/data:U --user 1234:1234", Place: dataFile, mounts: list(bind("U")), arrange: user},
		{Name: "bind-O", Doc: "-v DIR:/data:O", Place: dataFile, mounts: list(bind("O"))},
		{Name: "bind-O-upper", Doc: "-v DIR:/data:O,upperdir=UPPER,workdir=WORK", Place: dataFile, mounts: list(bind("O", "upperdir=upper", "workdir=work"))},
		{Name: "vol-O", Doc: "-v v:/data:O", Place: dataFile, mounts: list(vol("O")), volume: made(nil)},
		{Name: "tmpfs", Doc: "--tmpfs /data", Place: dataFile, mounts: list(scenarios.Mount{Kind: scenarios.Tmpfs, Target: dataDir})},
		{Name: "mount-tmpfs", Doc: "--mount type=tmpfs,dst=/data", Place: dataFile, mounts: list(long(scenarios.Tmpfs))},
		{Name: "shm", Doc: "nothing: /dev/shm", Place: "/dev/shm/token"},
		{Name: "readonly-root", Doc: "--read-only", Place: dataFile, arrange: readOnly(true)},
		{Name: "readonly-/tmp", Doc: "--read-only", Place: "/tmp/token", arrange: readOnly(true)},
		{Name: "readonly-/run", Doc: "--read-only", Place: "/run/token", arrange: readOnly(true)},
		{Name: "readonly-notmpfs-/tmp", Doc: "--read-only --read-only-tmpfs=false", Place: "/tmp/token", arrange: readOnly(false)},
		{Name: "readonly-notmpfs-/dev/shm", Doc: "--read-only --read-only-tmpfs=false", Place: "/dev/shm/token", arrange: readOnly(false)},
		{Name: "readonly+vol", Doc: "--read-only -v v:/data", Place: dataFile, mounts: list(vol()), volume: named(), arrange: readOnly(true)},
		{Name: "image-mount", Doc: "--mount type=image,source=IMAGE,dst=/m", Place: "/m/token", mounts: image()},
		{Name: "image-mount-rw", Doc: "--mount type=image,source=IMAGE,dst=/m,rw=true", Place: "/m/token", mounts: image("rw")},
		{Name: "volumes-from-named", Doc: "--volumes-from a container with -v v:/data", Place: dataFile, source: list(vol()), volume: named()},
		{Name: "volumes-from-anon", Doc: "--volumes-from a container with -v /data", Place: dataFile, source: list(anonymous), noName: true},
		{Name: "secret-file", Doc: "--secret s, written over by root inside", Place: "/run/secrets/s", arrange: func(c *scenarios.Container) { c.Secrets = []string{"s"} }},
		{Name: "RAM", Doc: "a value in the memory of process 1"},
	}
}
