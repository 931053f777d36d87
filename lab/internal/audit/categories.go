package audit

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Category says what a file is to whoever loses it.
type Category string

// Categories, most painful to lose first; the order of the report.
const (
	Databases     Category = "databases"
	Keys          Category = "keys"
	Uploads       Category = "uploads"
	Notes         Category = "notes"
	Logs          Category = "logs"
	Configuration Category = "configuration"
	Other         Category = "other files"
	Software      Category = "software"
	Caches        Category = "caches"
	// Folded away: a fresh container makes these again by itself.
	PackageCaches Category = "package caches"
	ProcessFiles  Category = "pid files and locks"
)

var categoryOrder = []Category{Databases, Keys, Uploads, Notes, Other, Logs, Configuration, Software, Caches, PackageCaches, ProcessFiles}

// folded: losing it is what one would want.
func (c Category) folded() bool { return c == PackageCaches || c == ProcessFiles }

// rule files paths under a category: by what the path begins with or holds,
// by a folder on the way, by the file's name, what it begins with, or its
// extension. All in lower case; words are separated by spaces.
type rule struct {
	category                                       Category
	prefix, contains, folder, name, begins, suffix string
}

// rules in order: the first that matches decides.
func rules() []rule {
	return []rule{
		{category: PackageCaches,
			prefix:   "/var/cache/apt/ /var/cache/apk/ /var/cache/dnf/ /var/cache/yum/ /var/cache/debconf/ /var/cache/ldconfig/ /var/cache/fontconfig/ /var/cache/man/ /var/cache/pacman/ /var/lib/apt/lists/ /var/lib/apt/periodic/ /var/lib/dnf/ /var/lib/yum/ /etc/apk/cache/ /var/lib/systemd/catalog/",
			contains: "/.cache/pip/ /.cache/pypoetry/ /.cache/uv/ /.cache/go-build/ /.cache/yarn/ /.cache/npm/ /.cache/node/ /.cache/composer/ /.cache/bazel/ /.cache/fontconfig/ /.cargo/registry/ /.gradle/caches/ /.bundle/cache/ /.nuget/packages/ /.m2/repository/ /node_modules/.cache/",
			folder:   "__pycache__ _cacache", suffix: ".pyc .pyo"},
		{category: ProcessFiles, prefix: "/run/lock/ /var/run/lock/ /var/lock/", name: "lock .lock pidfile lockfile", suffix: ".pid .lock .sock .socket"},
		// What package managers know as installed: software, not data.
		{category: Software,
			prefix:   "/var/lib/dpkg/ /var/lib/rpm/ /var/lib/pacman/ /lib/apk/ /bin/ /sbin/ /lib/ /lib64/ /usr/bin/ /usr/sbin/ /usr/lib/ /usr/lib64/ /usr/libexec/ /usr/share/ /usr/include/ /usr/local/bin/ /usr/local/sbin/ /usr/local/lib/ /usr/local/share/ /usr/local/include/",
			contains: "/.local/bin/ /.local/lib/", folder: "site-packages dist-packages node_modules"},
		{category: Databases, contains: "/pg_wal/ /pg_xact/ /appendonlydir/ /jetstream/", begins: "wiredtiger ibdata ib_logfile", name: "pg_version",
			suffix: ".db .db3 .sqlite .sqlite3 .s3db .mdb .rdb .aof .ldb .sst .bdb .ibd .frm .myd .myi .duckdb .realm .lmdb .gdbm .ndb"},
		{category: Keys, folder: ".ssh .gnupg .aws .kube .docker .age secret secrets credentials tokens private vault",
			name: ".env .netrc .pgpass .htpasswd .npmrc .pypirc credentials token secret", begins: "id_rsa id_ed25519 id_ecdsa ssh_host_ .env. credentials. secrets. token.",
			suffix: ".pem .key .p12 .pfx .jks .keystore .kdbx .gpg .asc .age .crt .cer .csr"},
		{category: Logs, prefix: "/var/log/", folder: "log logs", name: "nohup.out access_log error_log", suffix: ".log .journal"},
		{category: Caches, prefix: "/var/cache/", folder: "cache caches .cache .caches .thumbnails"},
		{category: Uploads, folder: "upload uploads media attachment attachments avatars photos pictures images documents downloads",
			suffix: ".jpg .jpeg .png .gif .webp .heic .svg .pdf .doc .docx .xls .xlsx .ppt .pptx .odt .mp3 .mp4 .mov .mkv .wav .flac .zip .tar .tgz .csv .parquet"},
		{category: Notes, folder: "note notes memory memories journal diary transcript transcripts history conversations chats sessions workspace scratchpad",
			begins: "notes. history. transcript. memory. conversation.", suffix: ".md .txt .org .rst .ipynb .jsonl .ndjson _history"},
		{category: Configuration, prefix: "/etc/", folder: ".config", name: "config.json", suffix: ".conf .cfg .ini .toml .yaml .yml .properties"},
	}
}

// sorter files paths under categories. Files of one folder share what the
// folder says, which is looked up once: a layer can hold 100 000 files.
type sorter struct {
	rules   []words
	folders map[string][]bool // folder → which rules it meets
}

type words struct {
	category                         Category
	prefix, contains, begins, suffix []string
	folder, name                     map[string]bool
}

func newSorter() *sorter {
	set := func(s string) map[string]bool {
		m := map[string]bool{}
		for _, w := range strings.Fields(s) {
			m[w] = true
		}
		return m
	}
	s := &sorter{folders: map[string][]bool{}}
	for _, r := range rules() {
		s.rules = append(s.rules, words{r.category, strings.Fields(r.prefix), strings.Fields(r.contains), strings.Fields(r.begins), strings.Fields(r.suffix), set(r.folder), set(r.name)})
	}
	return s
}

// category is what a file is to its owner.
func (s *sorter) category(file string) Category {
	dir, name := path.Split(file)
	met, ok := s.folders[dir]
	if !ok {
		met = s.folder(strings.ToLower(dir))
		s.folders[dir] = met
	}
	name = bare(strings.ToLower(name))
	for i, r := range s.rules {
		if met[i] || r.name[name] || anyOf(r.suffix, name, strings.HasSuffix) || anyOf(r.begins, name, strings.HasPrefix) {
			return r.category
		}
	}
	return Other
}

func (s *sorter) folder(dir string) []bool {
	met := make([]bool, len(s.rules))
	parts := strings.Split(strings.Trim(dir, "/"), "/")
	for i, r := range s.rules {
		met[i] = anyOf(r.prefix, dir, strings.HasPrefix) || anyOf(r.contains, dir, strings.Contains) ||
			slices.ContainsFunc(parts, func(p string) bool { return r.folder[p] })
	}
	return met
}

func anyOf(words []string, s string, match func(s, word string) bool) bool {
	for _, w := range words {
		if match(s, w) {
			return true
		}
	}
	return false
}

// bare takes off what is put behind a name when a file is rotated, packed or
// accompanied: app.log.2.gz, app.db-wal.
func bare(name string) string {
	for _, s := range []string{".gz", ".xz", ".zst", ".bz2", "-wal", "-shm", "-journal"} {
		name = strings.TrimSuffix(name, s)
	}
	if i := strings.LastIndexByte(name, '.'); i > 0 && i < len(name)-1 && strings.Trim(name[i+1:], "0123456789") == "" {
		name = name[:i]
	}
	return name
}

// databaseMarks are files by which a folder is known to be one database: all
// below it belongs together.
var databaseMarks = map[string]bool{
	"PG_VERSION": true, "ibdata1": true, "WiredTiger": true, "CURRENT": true, "data.mdb": true,
}

// sideFiles are what SQLite keeps beside a database.
var sideFiles = regexp.MustCompile(`-(wal|shm|journal)$`)

// groupOf is the folder or, for a database in one file, the file that a file
// is counted under.
func groupOf(file string, c Category, databases map[string]bool) string {
	if c == Databases {
		for dir := path.Dir(file); dir != "/"; dir = path.Dir(dir) {
			if databases[dir] {
				// The outermost: PostgreSQL marks the folder of every
				// database in it too.
				top := dir
				for up := path.Dir(dir); up != "/"; up = path.Dir(up) {
					if databases[up] {
						top = up
					}
				}
				return top
			}
		}
		return sideFiles.ReplaceAllString(file, "")
	}
	return folderOf(path.Dir(file))
}

// folderOf cuts a folder to the depth at which people think of it: /var/lib/app,
// /home/me/notes, /usr/share, /data.
func folderOf(dir string) string {
	parts := strings.Split(strings.Trim(dir, "/"), "/")
	depth := 2
	switch parts[0] {
	case "var", "home":
		depth = 3
	case "usr", "bin", "sbin", "lib", "lib64":
		depth = 1
	}
	return "/" + strings.Join(parts[:min(depth, len(parts))], "/")
}
