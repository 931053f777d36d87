package bindings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/containers/podman/v5/pkg/bindings/system"

	"persistencelab/lab/engine"
)

// The few things only the podman command can do. It must be the command of
// the same Podman, on the same store, or it would act on another's things.

// command runs podman with args beside the service and gives its stdout.
// UnsupportedError where no such command is.
func (p *Podman) command(ctx context.Context, what string, stdin io.Reader, args ...string) ([]byte, error) {
	c, err := p.cli(ctx, what)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, c.binary, append(c.args, args...)...)
	cmd.Env, cmd.Dir, cmd.Stdin = c.env, "/", stdin
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, wordsOf(err, words.String())
	}
	return out.Bytes(), nil
}

// commandOutput is command with the stdout as a stream.
func (p *Podman) commandOutput(ctx context.Context, what string, args ...string) (io.ReadCloser, error) {
	out, err := p.command(ctx, what, nil, args...)
	return io.NopCloser(bytes.NewReader(out)), err
}

// wordsOf is what podman said on stderr, without its warnings and its prefix.
func wordsOf(err error, stderr string) error {
	for line := range strings.Lines(stderr) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "Error: "); ok {
			return errors.New(text)
		}
	}
	return fmt.Errorf("podman: %w: %s", err, strings.TrimSpace(stderr))
}

// cli is the podman command with what makes it speak of this store.
type cli struct {
	binary string
	args   []string
	env    []string
}

func (p *Podman) cli(ctx context.Context, what string) (*cli, error) {
	p.cliOnce.Do(func() { p.cliFound, p.cliWhy = p.findCLI(ctx) })
	if p.cliFound == nil {
		return nil, &engine.UnsupportedError{What: what, Needs: "the podman command beside the service: " + p.cliWhy}
	}
	return p.cliFound, nil
}

func (p *Podman) findCLI(ctx context.Context) (found *cli, why string) {
	if p.service != nil {
		return &cli{p.service.binary, p.service.storeArgs, p.service.cmd.Env}, ""
	}
	if p.remote {
		return nil, "it runs on another machine"
	}
	binary, err := exec.LookPath("podman")
	if err != nil {
		return nil, "podman is not installed here"
	}
	// Somebody else's service: the command here is its own only if both
	// name the same store and version.
	info, err := system.Info(p.ctx(ctx), nil)
	if err != nil || info.Store == nil {
		return nil, "the service does not tell its store"
	}
	env := append(os.Environ(), "PODMAN_IGNORE_CGROUPSV1_WARNING=1")
	cmd := exec.CommandContext(ctx, binary, "--remote=false", "info", "--format", "json")
	cmd.Env, cmd.Dir = env, "/"
	out, err := cmd.Output()
	var own struct {
		Store   struct{ GraphRoot string }
		Version struct{ Version string }
	}
	if err == nil {
		err = json.Unmarshal(out, &own)
	}
	switch {
	case err != nil:
		return nil, "podman info fails here: " + err.Error()
	case own.Store.GraphRoot != info.Store.GraphRoot || own.Version.Version != info.Version.Version:
		return nil, fmt.Sprintf("the one here is podman %s on %s, the service is %s on %s", own.Version.Version, own.Store.GraphRoot, info.Version.Version, info.Store.GraphRoot)
	}
	return &cli{binary, []string{"--remote=false"}, env}, ""
}
