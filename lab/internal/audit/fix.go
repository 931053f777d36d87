package audit

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// namer gives volumes names that say what they hold, and knows which folders
// a volume was given for.
type namer struct {
	container string
	names     map[string]bool
	folders   []string
}

var notName = regexp.MustCompile(`[^a-zA-Z0-9_.-]+`)

func (n *namer) volume(folder string) string {
	n.folders = append(n.folders, folder)
	name := ""
	for _, last := range []string{path.Base(folder), strings.Trim(folder, "/")} {
		name = strings.Trim(notName.ReplaceAllString(n.container+"-"+last, "-"), "-.")
		if !n.names[name] {
			break
		}
	}
	n.names[name] = true
	return name
}

// covered: a folder at or above this one has its volume already.
func (n *namer) covered(folder string) bool {
	return slices.ContainsFunc(n.folders, func(f string) bool { return folder == f || strings.HasPrefix(folder, f+"/") })
}

// imageName is a name for a committed container.
func imageName(container string) string {
	return "localhost/" + strings.ToLower(strings.Trim(notName.ReplaceAllString(container, "-"), "-._")) + ":kept"
}

var plainWord = regexp.MustCompile(`^[a-zA-Z0-9_@%+=:,./-]+$`)

// quote makes a word that a shell takes as it is.
func quote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// rerun is the command that made the container, with the findings' mounts.
// Values given to -e are left out, for a report is passed on: `-e NAME` takes
// the value from the shell's own environment (podman-run(1)).
func rerun(command []string, findings []Finding) string {
	var mounts, drop []string
	for _, f := range findings {
		if f.mount != "" {
			mounts = append(mounts, "-v", f.mount)
		}
		if f.drop != "" && !slices.Contains(drop, f.drop) {
			drop = append(drop, f.drop)
		}
	}
	verb := slices.IndexFunc(command, func(w string) bool { return w == "run" || w == "create" })
	if len(mounts) == 0 || verb < 0 {
		return ""
	}
	out := append(slices.Clone(command[:verb+1]), mounts...)
	out[0] = path.Base(out[0])
	rest := command[verb+1:]
	for i := 0; i < len(rest); i++ {
		word := rest[i]
		option, value, inline := strings.Cut(word, "=")
		takesNext := !inline && i+1 < len(rest)
		switch option {
		case "-e", "--env":
			if takesNext {
				i++
				value = rest[i]
			}
			name, _, _ := strings.Cut(value, "=")
			out = append(out, "-e", name)
			continue
		case "-v", "--volume", "--mount", "--tmpfs":
			if takesNext {
				value = rest[i+1]
			}
			if slices.Contains(drop, targetOf(option, value)) {
				if takesNext {
					i++
				}
				continue
			}
		}
		out = append(out, word)
	}
	for i, w := range out {
		out[i] = quote(w)
	}
	return strings.Join(out, " ")
}

// targetOf is the place in the container that a mount option is about.
func targetOf(option, value string) string {
	switch option {
	case "--mount":
		for _, part := range strings.Split(value, ",") {
			key, v, _ := strings.Cut(part, "=")
			if key == "dst" || key == "destination" || key == "target" {
				return path.Clean(v)
			}
		}
		return ""
	case "--tmpfs":
		target, _, _ := strings.Cut(value, ":")
		return path.Clean(target)
	}
	parts := strings.Split(value, ":")
	if len(parts) == 1 {
		return path.Clean(parts[0])
	}
	return path.Clean(parts[1])
}

func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%s %ss", thousands(n), one)
}

func them(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// thousands groups digits: 100 000.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// bytesWords is a size for people, in powers of 1024.
func bytesWords(n int64) string {
	switch {
	case n < 0:
		return "size unknown"
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

func and(s []string) string {
	if len(s) < 2 {
		return strings.Join(s, "")
	}
	return strings.Join(s[:len(s)-1], ", ") + " and " + s[len(s)-1]
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
