package experiment

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// cp is `podman cp`, out of the container or into it.
func (r *runner) cp(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	sr.Proof = &Proof{Before: r.identity(st.On)}
	id := r.live[st.On].id
	if st.To != "" {
		body, err := r.eng.CopyOut(ctx, id, st.Path)
		if err != nil {
			return err
		}
		return r.save(body, st.To, sr)
	}
	f, err := os.Open(r.plan.archive(st.From))
	if err != nil {
		return err
	}
	defer f.Close()
	in, out := io.Pipe()
	go func() { out.CloseWithError(renamed(out, f, path.Base(st.Path))) }()
	err = r.eng.CopyIn(ctx, id, path.Dir(st.Path), in)
	in.Close()
	if err == nil {
		sr.Proof.Made = st.Path
	}
	return err
}

// renamed copies an archive of one file or folder, with another name for it.
func renamed(to io.Writer, from io.Reader, name string) error {
	r, w := tar.NewReader(from), tar.NewWriter(to)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return w.Close()
		}
		if err != nil {
			return fmt.Errorf("the copy: %w", err)
		}
		_, below, deeper := strings.Cut(strings.TrimPrefix(h.Name, "./"), "/")
		h.Name = name
		if deeper {
			h.Name += "/" + below
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(w, r); err != nil {
			return err
		}
	}
}
