package audit

import (
	"path"
	"regexp"
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

// rule files a path under a category. The first that matches decides.
type rule struct {
	category Category
	re       *regexp.Regexp
}

func rules(category Category, patterns ...string) rule {
	return rule{category, regexp.MustCompile(`(?i)` + strings.Join(patterns, "|"))}
}

var categoryRules = []rule{
	// Caches of package managers and languages, whatever lies in them.
	rules(PackageCaches,
		`^/var/cache/(apt|apk|dnf|yum|debconf|ldconfig|fontconfig|man|pacman)/`, `^/var/lib/(apt/lists|apt/periodic|dnf|yum)/`,
		`^/etc/apk/cache/`, `^/lib/apk/db/`, `/__pycache__/`, `\.py[co]$`, `/\.cache/(pip|pypoetry|uv|go-build|yarn|npm|node|composer|bazel|fontconfig)/`,
		`/\.(npm/_cacache|cargo/registry|gradle/caches|bundle/cache|nuget/packages|m2/repository)/`, `/node_modules/\.cache/`,
		`^/var/lib/systemd/catalog/`, `^/var/lib/dpkg/(lock|triggers/lock)`, `-old$`),
	rules(ProcessFiles, `\.(pid|lock|sock|socket)$`, `/\.?(lock|pidfile|lockfile)$`, `/\.X\d+-lock$`, `^/(var/)?run/lock/`),
	// What package managers know as installed: software, not the user's data.
	rules(Software, `^/var/lib/(dpkg|rpm|pacman)/`, `^/(usr|bin|sbin|lib|lib64)/(?:.*)`, `/(site-packages|dist-packages|node_modules)/`, `^/opt/.*/(bin|lib)/`, `/\.local/(bin|lib)/`),
	rules(Databases, `\.(db|db3|sqlite|sqlite3|s3db|mdb|rdb|aof|ldb|sst|bdb|ibd|frm|myd|myi|duckdb|realm|kch|lmdb|gdbm|ndb)(-wal|-shm|-journal)?$`,
		`/(pg_wal|pg_xact|base/\d+)/`, `/appendonlydir/`, `/wiredtiger`, `/(ibdata\d+|ib_logfile\d+|PG_VERSION|postmaster\.opts)$`, `/jetstream/`, `/(data|db|database|databases)/.*\.(wal|log\.\d+)$`),
	rules(Keys, `\.(pem|key|p12|pfx|jks|keystore|kdbx|gpg|asc|age|crt|cer|csr)$`, `/\.(ssh|gnupg|aws|kube|docker|age)/`, `/id_(rsa|ed25519|ecdsa|dsa)`,
		`/(secrets?|credentials?|tokens?|private|vault)(/|\.[a-z]+$|$)`, `/\.env(\.|$)`, `/\.(netrc|pgpass|htpasswd|npmrc|pypirc)$`, `/ssh_host_`),
	rules(Logs, `^/var/log/`, `/logs?/`, `\.log(\.\d+)?(\.(gz|xz|zst|bz2))?$`, `\.journal$`, `/(nohup\.out|access_log|error_log)$`),
	rules(Caches, `^/var/cache/`, `/\.?caches?/`, `/\.thumbnails/`),
	rules(Uploads, `/(uploads?|media|attachments?|avatars?|photos?|pictures|images|documents|downloads?|files/user)/`,
		`\.(jpe?g|png|gif|webp|heic|svg|pdf|docx?|xlsx?|pptx?|odt|mp3|mp4|mov|mkv|wav|flac|zip|tar|tgz|tar\.gz|csv|parquet)$`),
	rules(Notes, `/(notes?|memory|memories|journal|diary|transcripts?|history|conversations?|chats?|sessions?|workspace|scratchpad)(/|\.|$)`,
		`\.(md|txt|org|rst|ipynb|jsonl|ndjson)$`, `/\.[a-z]*_history$`),
	rules(Configuration, `^/etc/`, `\.(conf|cfg|ini|toml|ya?ml|properties)$`, `/\.config/`, `/config\.json$`),
}

// categorize files a path under what it is to its owner.
func categorize(file string) Category {
	for _, r := range categoryRules {
		if r.re.MatchString(file) {
			return r.category
		}
	}
	return Other
}

// databaseMarks are files by which a folder is known to be one database: all
// below it belongs together.
var databaseMarks = map[string]bool{
	"PG_VERSION": true, "ibdata1": true, "WiredTiger": true, "CURRENT": true, "etcd": true, "data.mdb": true,
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
