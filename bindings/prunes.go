package bindings

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// Own implements engine.Engine.
func (p *Podman) Own() bool { return p.service != nil && p.service.root != "" }

// errNotOwn guards what would reach other people's containers and volumes. A
// runner asks Own first; this is for the runner that does not.
var errNotOwn = errors.New("refused: this store is not the lab's own")

// PruneContainers implements engine.Engine.
func (p *Podman) PruneContainers(ctx context.Context) error {
	return p.prune(ctx, "/containers/prune", nil)
}

// PruneVolumes implements engine.Engine. Without a filter: a label filter
// would change what is pruned, and volumes without a name carry no label.
func (p *Podman) PruneVolumes(ctx context.Context) error {
	return p.prune(ctx, "/volumes/prune", nil)
}

// PruneSystem implements engine.Engine.
func (p *Podman) PruneSystem(ctx context.Context, volumes bool) error {
	query := url.Values{}
	if volumes {
		query.Set("volumes", "true")
	}
	return p.prune(ctx, "/system/prune", query)
}

func (p *Podman) prune(ctx context.Context, path string, query url.Values) error {
	if !p.Own() {
		return errNotOwn
	}
	return p.fail(ctx, p.call(ctx, http.MethodPost, path, query, nil, nil), "store", "")
}

// RestartService implements engine.Engine.
func (p *Podman) RestartService(ctx context.Context) error {
	if !p.Own() {
		return errNotOwn
	}
	old := p.service
	if err := old.stop(); err != nil {
		return err
	}
	again := &service{
		socket: old.socket, binary: old.binary, args: old.args,
		storeArgs: old.storeArgs, root: old.root,
	}
	fresh, err := again.start(ctx, p.host, old.cmd.Env)
	if err != nil {
		return err
	}
	p.service, p.conn = again, fresh.conn
	fresh.service = nil
	return nil
}
