package scenarios

import "encoding/json"

// Schema gives the JSON Schema (draft 2020-12) of scenario files, for editors
// to complete and check by. It is made from the tables Parse reads by. It
// says what shape a file has; that names exist and steps can happen only
// Parse checks.
func Schema() ([]byte, error) {
	root := objectSchema(scenarioFields())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Persistence Lab scenario"
	root["description"] = "Mounts, data, steps and expectations of one persistence experiment. lab check FILE checks more than this schema can."
	root["$defs"] = schema{
		"mounts":     mountSchema(),
		"disks":      disksSchema(),
		"containers": namedSchema(objName, objectSchema(containerFields())),
		"data":       itemSchema(),
		"steps":      stepSchema(),
		"expect":     expectSchema(),
		"variants":   namedSchema(lineText, objectSchema(variantFields())),
		"misconceptions": schema{
			"type": "array", "items": objectSchema(misconceptionFields()),
		},
	}
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(out, '\n'), nil
}

// namedSchema is a mapping of names to values that may be left empty.
func namedSchema(name rule, value schema) schema {
	return schema{"type": "object", "propertyNames": schema{"pattern": name.re.String()},
		"additionalProperties": schema{"anyOf": []any{schema{"type": "null"}, value}}}
}
