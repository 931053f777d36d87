package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"persistencelab/lab/internal/board"
	"persistencelab/lab/internal/classroom"
	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/teach"
	"persistencelab/scenarios"
)

type boardOptions struct {
	listen    string
	address   string
	store     string
	attempts  string
	export    bool
	newSecret bool
	seats     int
	allow     []string
}

func newBoard(env *Env) *cobra.Command {
	var opts boardOptions
	cmd := &cobra.Command{
		Use:   "board [SCENARIO…]",
		Short: "A live page for the class: predictions, bars, what really happened",
		Long: "A page for the projector. Learners join with the class code, in a browser or with lab learn\n" +
			"--board, and seal their predictions; the bars stay hidden until you reveal them. After the\n" +
			"discussion comes round two, and then what really happened beside both. Ctrl-C ends it and\n" +
			"writes the attempt files that lab table reads. Without an argument it asks about\n" +
			defaultScenario + ".\n" +
			"\n" +
			"An answer that was acknowledged is on disk. The same --store again goes on with the same\n" +
			"class, also after a crash or kill -9.\n" +
			"\n" +
			"It answers on this machine only, unless --listen says otherwise. What goes over the network\n" +
			"is plain HTTP: the code keeps strangers out and does not hide what is said. The teacher's\n" +
			"secret is printed once; the board keeps a hash of it.",
		Example: "  lab board                                       # try it on this machine\n" +
			"  lab board three-mounts stop-and-start --listen :8737\n" +
			"  lab board --store monday.sqlite                 # go on, or begin\n" +
			"  lab board --store monday.sqlite --export        # only write the attempt files",
		RunE: func(cmd *cobra.Command, args []string) error { return runBoard(cmd.Context(), env, opts, args) },
	}
	f := cmd.Flags()
	f.StringVar(&opts.listen, "listen", "127.0.0.1:8737", "address and port to answer on; \":8737\" for every network of this machine")
	f.StringVar(&opts.address, "address", "", "where learners go, as the projector shows it (default: found out)")
	f.StringVar(&opts.store, "store", "", "the class's file (default: a new one in the lab's state folder)")
	f.StringVar(&opts.attempts, "attempts", "", "folder for the attempt files (default: beside the store)")
	f.BoolVar(&opts.export, "export", false, "write the attempt files of --store, and end")
	f.BoolVar(&opts.newSecret, "new-secret", false, "make another teacher's secret: the old one is lost, or known")
	f.IntVar(&opts.seats, "seats", 400, "how many can join")
	f.StringArrayVar(&opts.allow, "allow-host-path", nil, "host folder a scenario may bind-mount (repeatable)")
	return cmd
}

func runBoard(ctx context.Context, env *Env, opts boardOptions, args []string) error {
	if opts.seats < 1 {
		return usagef("lab board --seats 40", "--seats %d: nobody could join", opts.seats)
	}
	if opts.export {
		if opts.store == "" || len(args) > 0 {
			return usagef("lab board --store FILE --export", "--export writes the attempts of a --store, and asks about nothing")
		}
		attempts, err := board.Export(opts.store, env.Now)
		if errors.Is(err, os.ErrNotExist) {
			return usagef("lab board --store FILE --export", "there is no store %s", opts.store)
		}
		if err != nil {
			return &usageError{err: err}
		}
		return writeAttempts(env, opts.folder(), attempts)
	}
	names := args
	if len(names) == 0 {
		names = []string{defaultScenario}
	}
	list, err := loadScenarios(names, false, opts.allow)
	if err != nil {
		return err
	}
	if opts.store == "" {
		state, err := stateDir(env)
		if err != nil {
			return err
		}
		opts.store = filepath.Join(state, "board", env.Now().Format("2006-01-02-150405")+".sqlite")
	}
	if err := os.MkdirAll(filepath.Dir(opts.store), 0o700); err != nil {
		return fmt.Errorf("the board's store: %w", err)
	}
	asked := topics(list)
	for _, t := range asked {
		if len(t.Questions) == 0 {
			return usagef("lab list", "there is nothing to predict in %s: what it shows varies from run to run", t.Name)
		}
	}
	l, err := listen(opts.listen)
	if err != nil {
		return err
	}
	defer l.Close()
	if opts.address == "" {
		opts.address = "http://" + reachable(l.Addr().(*net.TCPAddr)) + "/"
	}
	b, secret, err := board.Open(board.Options{
		File: opts.store, Topics: asked, Seats: opts.seats, Address: opts.address, Now: env.Now, Random: env.Random,
	})
	if err != nil {
		return &usageError{err: err, hint: "lab board --store another.sqlite"}
	}
	defer b.Close()
	for _, s := range list {
		if len(args) > 0 && b.View().Topic(s.Name) == nil {
			return usagef("lab board --store another.sqlite "+strings.Join(args, " "), "the class in %s is not asked about %s", opts.store, s.Name)
		}
	}
	if secret == "" && opts.newSecret {
		if secret, err = b.NewSecret(); err != nil {
			return err
		}
	}
	if err := announce(env, opts, b, l.Addr().(*net.TCPAddr), secret); err != nil {
		return err
	}
	env.ending("writing the attempt files")
	if err := b.Serve(ctx, l); err != nil {
		return err
	}
	return writeAttempts(env, opts.folder(), b.Export())
}

// folder is where the attempt files go.
func (o boardOptions) folder() string {
	if o.attempts != "" {
		return o.attempts
	}
	return strings.TrimSuffix(o.store, filepath.Ext(o.store)) + "-attempts"
}

// topics are scenarios as a board asks about them: the questions that lab
// learn asks, too.
func topics(list []*scenarios.Scenario) []board.Topic {
	var ts []board.Topic
	for _, s := range list {
		var items []board.Item
		for _, it := range s.Data {
			items = append(items, board.Item{Name: it.Name, Place: experiment.PlaceOf(it)})
		}
		var built []board.Built
		for _, p := range picturesBefore(s) {
			built = append(built, board.Built{Variant: p.Variant, Says: teach.Outside(p.Frames[0])})
		}
		ts = append(ts, board.Topic{
			Name: s.Name, Title: s.Title, Lesson: s.Lesson, Question: strings.TrimSpace(s.Question), Hash: s.Hash,
			About: s.About, Items: items, Built: built,
			Questions: teach.Questions(s), Choices: teach.Choices(s), Misconceptions: s.Misconceptions,
		})
	}
	return ts
}

func listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, usagef("lab board --listen 127.0.0.1:0   # any free port", "something else answers on %s", address)
	}
	return nil, &usageError{err: fmt.Errorf("--listen %s: %w", address, err), hint: "lab board --listen :8737"}
}

// reachable is the address as others type it.
func reachable(at *net.TCPAddr) string {
	if at.IP.IsUnspecified() {
		addresses, _ := net.InterfaceAddrs()
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
				at = &net.TCPAddr{IP: n.IP, Port: at.Port}
				break
			}
		}
	}
	return at.String()
}

// announce says where everybody goes. The secret is in the address's fragment,
// which no browser sends anywhere.
func announce(env *Env, opts boardOptions, b *board.Board, at *net.TCPAddr, secret string) error {
	var out bytes.Buffer
	own := *at
	if own.IP.IsUnspecified() {
		own.IP = net.IPv4(127, 0, 0, 1)
	}
	address := strings.TrimSuffix(opts.address, "/")
	fmt.Fprintf(&out, "class code  %s\n", b.Code())
	fmt.Fprintf(&out, "learners    %s/   or: lab learn --board %s --code %s\n", address, address, b.Code())
	if secret != "" {
		fmt.Fprintf(&out, "teacher     http://%s/teacher#%s   (only yours, and printed only now)\n", own.String(), secret)
	} else {
		fmt.Fprintf(&out, "teacher     http://%s/teacher   (the secret is the one from the start; lost: --new-secret)\n", own.String())
	}
	fmt.Fprintf(&out, "store       %s\n", opts.store)
	if _, err := env.Stdout.Write(out.Bytes()); err != nil {
		return err
	}
	if !at.IP.IsLoopback() {
		fmt.Fprintln(env.Stderr, "lab: everybody on this network can reach the board; what goes over it is not encrypted")
	}
	fmt.Fprintln(env.Stderr, "lab: hint: Ctrl-C ends the board and writes the attempt files")
	return nil
}

// writeAttempts ends a class: as files.
func writeAttempts(env *Env, folder string, attempts []*classroom.Attempt) error {
	if len(attempts) == 0 {
		fmt.Fprintln(env.Stderr, "lab: nobody answered anything")
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("the attempt files: %w", err)
	}
	for _, a := range attempts {
		if _, err := a.WriteFile(folder); err != nil {
			return err
		}
	}
	fmt.Fprintf(env.Stdout, "%s in %s\n", count(len(attempts), "attempt file"), folder)
	fmt.Fprintf(env.Stderr, "lab: hint: lab table %s\n", folder)
	return nil
}
