package cli

import (
	"context"
	"errors"
	"fmt"

	"persistencelab/lab/internal/board"
	"persistencelab/lab/internal/classroom"
	"persistencelab/lab/internal/teach"
)

// atBoard takes a lesson to a class's board: sealed predictions before the
// run, and what came of them after it.
type atBoard struct {
	env       *Env
	url, code string
	client    *board.Client // from the first sealed round on: its session is the learner's
	away      bool          // it was said that the board does not answer
}

// goToBoard lets the tutor's rounds go to the board that the flags name. A
// wrong address or code is said before the lesson begins.
func goToBoard(ctx context.Context, env *Env, opts learnOptions, t *teach.Tutor) error {
	switch {
	case opts.board == "" && opts.code == "":
		return nil
	case opts.board == "" || opts.code == "":
		return usagef("lab learn --board http://192.168.1.20:8737 --code K7M-2QX", "--board and --code belong together: the teacher's page shows both")
	}
	if err := board.Knock(ctx, opts.board, opts.code); err != nil {
		return &usageError{err: err, hint: "the teacher's page shows the address and the code"}
	}
	b := &atBoard{env: env, url: opts.board, code: opts.code}
	t.Sealed, t.Finished = b.sealed, b.finished
	return nil
}

func (b *atBoard) sealed(ctx context.Context, a *classroom.Attempt, r *classroom.Round) error {
	if b.client == nil {
		c, err := board.Join(ctx, b.url, b.code, a)
		if err != nil {
			return &usageError{err: fmt.Errorf("the board: %w", err), hint: "your predictions are sealed; lab learn goes on from here, with --board or without"}
		}
		c.Waiting = func(err error) {
			if !b.away {
				fmt.Fprintf(b.env.Stderr, "lab: waiting for the board: %v\n", err)
			}
			b.away = true
		}
		b.client = c
	}
	b.away = false
	receipt, err := b.client.Submit(ctx, r)
	if err != nil {
		return b.said(ctx, "your prediction is not on the board", err)
	}
	fmt.Fprintf(b.env.Stderr, "lab: your prediction is on the board: round %d, sealed there at %s (seal %s)\n",
		receipt.Round, receipt.Sealed.Local().Format("15:04:05"), classroom.ShortSeal(receipt.Seal))
	return nil
}

func (b *atBoard) finished(ctx context.Context, a *classroom.Attempt, _ *classroom.Round) error {
	if b.client == nil {
		return nil
	}
	b.away = false
	if err := b.client.Report(ctx, a); err != nil {
		return b.said(ctx, "your results are not on the board", err)
	}
	return nil
}

// said is what the board refused, said; the lesson goes on. Only an interrupt
// while the board is away ends it.
func (b *atBoard) said(ctx context.Context, what string, err error) error {
	var no *board.Refusal
	if errors.As(err, &no) {
		fmt.Fprintf(b.env.Stderr, "lab: %s: %v\n", what, no)
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
