package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/internal/experiment"
	"persistencelab/scenarios"
)

// schema is the part of JSON Schema that report.schema.json uses.
type schema struct {
	Schema      string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Ref         string             `json:"$ref,omitempty"`
	Type        string             `json:"type,omitempty"`
	Format      string             `json:"format,omitempty"`
	Const       any                `json:"const,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Additional  *bool              `json:"additionalProperties,omitempty"`
	Defs        map[string]*schema `json:"$defs,omitempty"`
}

// TestSchema: the schema is what the Go types and their comments say. After a
// change there: go test ./lab/internal/report -update, and raise
// experiment.ReportVersion if an old reader would misread the new document.
func TestSchema(t *testing.T) {
	g := generator{docs: comments(t, "../experiment", "../../engine", "../../../probeimage/wire"), defs: map[string]*schema{}}
	root := g.of(reflect.TypeOf(experiment.Report{}))
	s := *g.defs[strings.TrimPrefix(root.Ref, "#/$defs/")]
	delete(g.defs, "Report")
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "Persistence Lab report"
	s.Properties["version"].Const = experiment.ReportVersion
	s.Defs = g.defs
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	require.NoError(t, enc.Encode(s))
	if *update {
		require.NoError(t, os.WriteFile("report.schema.json", want.Bytes(), 0o644))
		Schema = want.Bytes() // what the next build embeds
	}
	require.Equal(t, want.String(), string(Schema), "run: go test ./lab/internal/report -update")
}

type generator struct {
	docs map[string]string // "Type" and "Type.Field"
	defs map[string]*schema
}

func (g generator) of(t reflect.Type) *schema {
	switch t {
	case reflect.TypeOf(time.Time{}):
		return &schema{Type: "string", Format: "date-time"}
	case reflect.TypeOf(time.Duration(0)):
		return &schema{Type: "integer"}
	case reflect.TypeOf(scenarios.Outcome("")):
		return &schema{Type: "string", Enum: outcomes}
	case reflect.TypeOf(experiment.Judgement("")):
		s := &schema{Type: "string"}
		for _, j := range judgements {
			s.Enum = append(s.Enum, string(j))
		}
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.of(t.Elem())
	case reflect.String:
		return &schema{Type: "string"}
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.Int, reflect.Int64:
		return &schema{Type: "integer"}
	case reflect.Slice:
		return &schema{Type: "array", Items: g.of(t.Elem())}
	case reflect.Struct:
		if g.defs[t.Name()] == nil {
			no := false
			s := &schema{Type: "object", Description: g.docs[t.Name()], Properties: map[string]*schema{}, Additional: &no}
			g.defs[t.Name()] = s
			for i := range t.NumField() {
				f := t.Field(i)
				name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
				if name == "" || name == "-" {
					panic(fmt.Sprintf("%s.%s has no json name", t.Name(), f.Name))
				}
				p := *g.of(f.Type)
				p.Description = g.docs[t.Name()+"."+f.Name]
				s.Properties[name] = &p
				if !strings.Contains(opts, "omit") {
					s.Required = append(s.Required, name)
				}
			}
		}
		return &schema{Ref: "#/$defs/" + t.Name()}
	}
	panic("no schema for " + t.String())
}

// comments reads the comments on the types and fields of packages.
func comments(t *testing.T, dirs ...string) map[string]string {
	docs := map[string]string{}
	text := func(groups ...*ast.CommentGroup) string {
		for _, g := range groups {
			if g != nil {
				return strings.Join(strings.Fields(g.Text()), " ")
			}
		}
		return ""
	}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, dir)
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			require.NoError(t, err)
			for _, d := range f.Decls {
				decl, ok := d.(*ast.GenDecl)
				if !ok || decl.Tok != token.TYPE {
					continue
				}
				for _, spec := range decl.Specs {
					ts := spec.(*ast.TypeSpec)
					docs[ts.Name.Name] = text(ts.Doc, decl.Doc)
					st, ok := ts.Type.(*ast.StructType)
					if !ok {
						continue
					}
					for _, field := range st.Fields.List {
						for _, name := range field.Names {
							docs[ts.Name.Name+"."+name.Name] = text(field.Doc, field.Comment)
						}
					}
				}
			}
		}
	}
	return docs
}

// check says where a value does not follow the schema.
func (root *schema) check(s *schema, v any, at string) (faults []string) {
	if s.Ref != "" {
		s = root.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
	}
	fault := func(format string, a ...any) { faults = append(faults, at+": "+fmt.Sprintf(format, a...)) }
	kind := map[string]bool{"integer": false, "string": false, "boolean": false, "array": false, "object": false}
	switch v := v.(type) {
	case string:
		kind["string"] = true
		if s.Enum != nil && !slices.Contains(s.Enum, v) {
			fault("%q is none of %q", v, s.Enum)
		}
		if s.Format == "date-time" {
			if _, err := time.Parse(time.RFC3339Nano, v); err != nil {
				fault("%v", err)
			}
		}
	case bool:
		kind["boolean"] = true
	case float64:
		kind["integer"] = v == float64(int64(v))
		if s.Const != nil && s.Const != v {
			fault("%v is not %v", v, s.Const)
		}
	case []any:
		kind["array"] = true
		if s.Items != nil {
			for i, e := range v {
				faults = append(faults, root.check(s.Items, e, fmt.Sprintf("%s[%d]", at, i))...)
			}
		}
	case map[string]any:
		kind["object"] = true
		for _, k := range s.Required {
			if _, ok := v[k]; !ok {
				fault("no %q", k)
			}
		}
		for k, e := range v {
			if p := s.Properties[k]; p != nil {
				faults = append(faults, root.check(p, e, at+"."+k)...)
			} else if s.Additional != nil && !*s.Additional {
				fault("%q is not in the schema", k)
			}
		}
	}
	if !kind[s.Type] {
		fault("not of type %s", s.Type)
	}
	return faults
}

// TestJSONFollowsSchema: so does a report with nothing in its lists, and the
// check does find faults.
func TestJSONFollowsSchema(t *testing.T) {
	var root schema
	require.NoError(t, json.Unmarshal(Schema, &root))
	f, err := Formats().Pick("json", "")
	require.NoError(t, err)
	faults := func(doc string) []string {
		var v any
		require.NoError(t, json.Unmarshal([]byte(doc), &v))
		return root.check(&root, v, "")
	}
	all := inputs(t)
	all["empty"] = &experiment.Report{Version: experiment.ReportVersion, Records: make([]experiment.Record, 1),
		Scenarios: []experiment.ScenarioSummary{{Variants: make([]experiment.VariantSummary, 1)}}}
	for name, r := range all {
		require.Empty(t, faults(write(t, f, r, Options{})), name)
	}

	doc := write(t, f, all["three-mounts"], Options{})
	for old, bad := range map[string]string{`"version": 1`: `"version": 2`, `"tool":`: `"toll":`, `"lost"`: `"gone"`,
		`"written": true`: `"written": "yes"`, `"removed": [`: `"removed": null, "x": [`} {
		require.Contains(t, doc, old)
		require.NotEmpty(t, faults(strings.Replace(doc, old, bad, 1)), bad)
	}
}
