package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"persistencelab/scenarios"
)

// What a decision table accepts.

// accept compares what would be lost with the policy.
func (j *judge) accept(policy []scenarios.Item) {
	for _, list := range [][]Finding{j.a.Findings, j.a.Folded} {
		for i := range list {
			fi := &list[i]
			if fi.Outcome == scenarios.Lost {
				fi.judgeBy(policy, j.f.At)
			}
		}
	}
	// What the owner calls not acceptable is not folded away.
	j.a.Folded = slices.DeleteFunc(j.a.Folded, func(fi Finding) bool {
		if fi.Broken != "" {
			j.a.Findings = append(j.a.Findings, fi)
		}
		return fi.Broken != ""
	})
	for i := range j.a.Findings {
		fi := &j.a.Findings[i]
		switch fi.Outcome {
		case scenarios.Lost:
			j.a.LostFiles += fi.Files
			if fi.Where != "process memory" {
				j.a.LostBytes += max(0, fi.Bytes)
			}
			if fi.Accepted == "" {
				j.a.NotAccepted++
			}
		case scenarios.Unknown:
			j.a.Unknown++
		}
	}
}

// judgeBy finds what the policy says of every file of the finding; the most
// exact path decides. All must be accepted for the finding to be.
func (fi *Finding) judgeBy(policy []scenarios.Item, now time.Time) {
	if len(policy) == 0 || len(fi.paths) == 0 {
		return
	}
	accepted := map[string]bool{}
	for i, p := range fi.paths {
		item := coverOf(p, policy)
		if item == nil || item.AcceptableLoss == nil && item.Rebuild == "" {
			fi.Accepted = ""
			return
		}
		loss := item.AcceptableLoss
		switch {
		case loss != nil && loss.All, loss == nil && item.Rebuild == "auto":
			accepted[item.Name] = true
		case loss != nil && loss.Within > 0 && !fi.mtimes[i].IsZero() && now.Sub(fi.mtimes[i]) <= loss.Within:
			accepted[item.Name] = true
		case loss != nil && loss.Within > 0:
			fi.Broken = fmt.Sprintf("%s: at most the last %s may be lost, and this would lose all of it", item.Name, loss.Within)
			return
		case loss == nil:
			fi.Broken = item.Name + ": it is rebuilt by hand, and nothing was said to be acceptable"
			return
		default:
			fi.Broken = item.Name + ": no loss is acceptable"
			return
		}
	}
	fi.Accepted = "policy: " + strings.Join(slices.Sorted(maps.Keys(accepted)), ", ")
}

func coverOf(p string, policy []scenarios.Item) *scenarios.Item {
	var best *scenarios.Item
	for i, it := range policy {
		if (p == it.Path || strings.HasPrefix(p, it.Path+"/") || it.Kind == scenarios.SQLite && sideFiles.ReplaceAllString(p, "") == it.Path) &&
			(best == nil || len(it.Path) > len(best.Path)) {
			best = &policy[i]
		}
	}
	return best
}
