package experiment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"persistencelab/lab/engine"
)

// What is made of a container, and what its image goes through.

// commit is `podman commit`: an image of the writable layer.
func (r *runner) commit(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	sr.Proof = &Proof{Before: r.identity(st.On)}
	ref := r.plan.imageRef(st.To)
	if err := r.note("image", ref); err != nil {
		return err
	}
	id, err := r.eng.Commit(ctx, r.live[st.On].id, ref)
	if err != nil {
		return err
	}
	return r.provesImage(ctx, sr, ref, id)
}

// provesImage records the image an event made.
func (r *runner) provesImage(ctx context.Context, sr *StepRecord, ref, id string) error {
	got, err := r.eng.ImageID(ctx, ref)
	if err != nil {
		return err
	}
	if id != "" && trimSHA(got) != trimSHA(id) {
		return &fault{fmt.Errorf("podman made image %s, but %s is %s", short(trimSHA(id)), ref, short(trimSHA(got)))}
	}
	sr.Proof.Made = fmt.Sprintf("image %s, %s", ref, short(trimSHA(got)))
	return nil
}

func trimSHA(id string) string {
	if len(id) > 7 && id[:7] == "sha256:" {
		return id[7:]
	}
	return id
}

// export is `podman export`: the container's files, without its mounts.
func (r *runner) export(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	sr.Proof = &Proof{Before: r.identity(st.On)}
	body, err := r.eng.ExportContainer(ctx, r.live[st.On].id)
	if err != nil {
		return err
	}
	return r.save(body, st.To, sr)
}

// save writes an archive the engine gave into the plan's folder.
func (r *runner) save(body io.ReadCloser, name string, sr *StepRecord) error {
	defer body.Close()
	file := r.plan.archive(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, body)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	sr.Proof.Made = fmt.Sprintf("archive %s, %d bytes", file, n)
	return err
}

// importImage is `podman import`.
func (r *runner) importImage(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	sr.Proof = &Proof{}
	f, err := os.Open(r.plan.archive(st.From))
	if err != nil {
		return err
	}
	defer f.Close()
	ref := r.plan.imageRef(st.To)
	if err := r.note("image", ref); err != nil {
		return err
	}
	id, err := r.eng.ImportImage(ctx, ref, f)
	if err != nil {
		return err
	}
	return r.provesImage(ctx, sr, ref, id)
}

// rebuild makes the container's image anew under the same tag.
func (r *runner) rebuild(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	sr.Proof = &Proof{Before: r.identity(st.On)}
	old, err := r.eng.ImageID(ctx, st.image.Ref)
	var missing *engine.NotFoundError
	switch {
	case err == nil:
		// It loses its name, and stays for as long as containers use it.
		if err := r.note("image", old); err != nil {
			return err
		}
	case !errors.As(err, &missing):
		return err
	}
	if err := r.note("image", st.image.Ref); err != nil {
		return err
	}
	if err := r.eng.LoadImage(ctx, *st.image); err != nil {
		return err
	}
	if err := r.provesImage(ctx, sr, st.image.Ref, ""); err != nil {
		return err
	}
	if now, err := r.eng.ImageID(ctx, st.image.Ref); err != nil || now == old {
		return errors.Join(err, &fault{errors.New("the image was built anew, but it is the old one")})
	}
	return nil
}

// rmi is `podman rmi -f`: the image, and the containers made of it.
func (r *runner) rmi(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	sr.Proof = &Proof{Before: r.identity(st.On)}
	ref := r.plan.images[st.On].Ref
	if err := r.eng.RemoveImage(ctx, ref, true); err != nil {
		return err
	}
	if _, err := r.eng.ImageID(ctx, ref); err == nil {
		return &fault{errors.New("podman says it removed the image, but it is still there")}
	}
	if err := r.gone("image", ref); err != nil {
		return err
	}
	return r.lookAround(ctx, sr)
}
