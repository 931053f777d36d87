package scenarios_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"persistencelab/scenarios"
)

// The schema beside the scenarios is what the tables say.
func TestSchemaIsCurrent(t *testing.T) {
	got, err := scenarios.Schema()
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile("schema.json", got, 0o644))
	}
	want, err := os.ReadFile("schema.json")
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "go test ./scenarios -update writes it anew")
}

// An editor that checks by the schema accepts what Parse accepts.
func TestSchemaAcceptsScenarios(t *testing.T) {
	check := newSchema(t)
	files, err := filepath.Glob("*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, check.file(src), file)
	}
	require.NoError(t, check.file(scenarios.Starter("x")))
	require.NoError(t, check.file([]byte(everyVerb)))
	require.NoError(t, check.file([]byte(everyMachineVerb)))
}

// And it refuses faults of shape. Faults of sense only Parse can find.
func TestSchemaRefusesFaultsOfShape(t *testing.T) {
	check := newSchema(t)
	for _, name := range []string{"key-typo", "wrong-type", "mount-kind", "step-unknown", "outcomes", "item-paths", "privileges", "bad-indent-step-option", "null-values", "root-list"} {
		src, err := os.ReadFile("testdata/bad/" + name + ".yaml")
		require.NoError(t, err)
		require.Error(t, check.file(src), name)
	}
}

// jsonSchema evaluates the keywords the schema uses, and fails on others.
type jsonSchema struct{ root map[string]any }

func newSchema(t *testing.T) jsonSchema {
	src, err := scenarios.Schema()
	require.NoError(t, err)
	var s jsonSchema
	require.NoError(t, json.Unmarshal(src, &s.root))
	return s
}

func (s jsonSchema) file(src []byte) error {
	var v any
	if err := yaml.Unmarshal(src, &v); err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	return s.check(s.root, v, "")
}

func (s jsonSchema) check(schema map[string]any, v any, path string) error {
	for keyword, arg := range schema {
		if err := s.keyword(schema, keyword, arg, v, path); err != nil {
			return err
		}
	}
	return nil
}

func (s jsonSchema) keyword(schema map[string]any, keyword string, arg, v any, path string) error {
	object, _ := v.(map[string]any)
	list, _ := v.([]any)
	bad := func() error { return fmt.Errorf("%s: %v: %s %v", path, v, keyword, arg) }
	switch keyword {
	case "$schema", "$defs", "title", "description", "uniqueItems":
	case "$ref":
		name := strings.TrimPrefix(arg.(string), "#/$defs/")
		return s.check(s.root["$defs"].(map[string]any)[name].(map[string]any), v, path)
	case "type":
		types, ok := arg.([]any)
		if !ok {
			types = []any{arg}
		}
		for _, t := range types {
			if isType(t.(string), v) {
				return nil
			}
		}
		return bad()
	case "const":
		if !reflect.DeepEqual(arg, v) {
			return bad()
		}
	case "enum":
		for _, word := range arg.([]any) {
			if word == v {
				return nil
			}
		}
		return bad()
	case "pattern":
		if text, ok := v.(string); ok && !regexp.MustCompile(arg.(string)).MatchString(text) {
			return bad()
		}
	case "minimum":
		if n, ok := v.(float64); ok && n < arg.(float64) {
			return bad()
		}
	case "maximum":
		if n, ok := v.(float64); ok && n > arg.(float64) {
			return bad()
		}
	case "anyOf":
		for _, form := range arg.([]any) {
			if s.check(form.(map[string]any), v, path) == nil {
				return nil
			}
		}
		return bad()
	case "minItems":
		if list != nil && float64(len(list)) < arg.(float64) {
			return bad()
		}
	case "items":
		for i, item := range list {
			if err := s.check(arg.(map[string]any), item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case "required":
		for _, key := range arg.([]any) {
			if _, ok := object[key.(string)]; object != nil && !ok {
				return bad()
			}
		}
	case "propertyNames":
		for key := range object {
			if err := s.check(arg.(map[string]any), key, path+" name"); err != nil {
				return err
			}
		}
	case "properties":
		for key, sub := range arg.(map[string]any) {
			if value, ok := object[key]; ok {
				if err := s.check(sub.(map[string]any), value, path+"."+key); err != nil {
					return err
				}
			}
		}
	case "additionalProperties":
		known, _ := schema["properties"].(map[string]any)
		for key, value := range object {
			if _, ok := known[key]; ok {
				continue
			}
			sub, ok := arg.(map[string]any)
			if !ok {
				return fmt.Errorf("%s: unknown key %q", path, key)
			}
			if err := s.check(sub, value, path+"."+key); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("the test does not know the keyword %s", keyword)
	}
	return nil
}

func isType(name string, v any) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && v == float64(int(v))
	case []any:
		return name == "array"
	default:
		return name == "object"
	}
}
