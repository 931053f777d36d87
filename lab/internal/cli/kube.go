package cli

import (
	"bytes"
	"errors"

	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/files"
	"persistencelab/scenarios"
)

// printKube writes scenarios, called names by whoever asked, as one stream of
// Kubernetes YAML.
func printKube(env *Env, file string, names []string, list []*scenarios.Scenario) error {
	var out bytes.Buffer
	for i, s := range list {
		text, err := experiment.Kubernetes(s, imageMaker())
		var none *experiment.NoKubeFormError
		if errors.As(err, &none) {
			return &usageError{err: err, hint: "lab run --dry-run " + names[i] + "   # what it does in podman's words"}
		}
		if err != nil {
			return err
		}
		if out.Len() > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	if file != "" {
		return files.Replace(file, out.Bytes())
	}
	_, err := env.Stdout.Write(out.Bytes())
	return err
}
