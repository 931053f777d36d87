// Command store is what scenarios keep state in when it is to live outside
// their containers: a database and an object bucket, real ones, in one static
// file that needs no network to get and no setting up.
//
//	store database   NATS JetStream: keys and values over the NATS protocol
//	store bucket     rclone serve s3: objects over Amazon's S3 protocol
//
// Both listen on the loopback address only, because the containers of a
// scenario share one network namespace, keep everything in one folder, and let
// in whoever knows the user and the password of their environment:
//
//	STORE_USER, STORE_PASSWORD   required; for the bucket key id and secret
//	STORE_PORT                   where it listens; without: 4222, 9000
//	STORE_DATA                   the folder; without: /data
//	STORE_LIMIT                  database: bytes it may keep, 0 for no limit
//
// An acknowledged write to the database is on disk: every one is synced. An
// object is in the file system when it is acknowledged, but not synced: it
// outlives the store's process, and may not outlive a power cut.
//
// It is a Go module of its own: rclone's three hundred modules stay out of the
// lab's.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// settings come from the environment, as a service's should.
type settings struct {
	user, password string
	port           int
	data           string
	limit          int64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv); err != nil {
		fmt.Fprintf(os.Stderr, "store: error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string) error {
	s := settings{user: getenv("STORE_USER"), password: getenv("STORE_PASSWORD"), data: cmp.Or(getenv("STORE_DATA"), "/data")}
	if s.user == "" || s.password == "" {
		return errors.New("STORE_USER and STORE_PASSWORD must be set")
	}
	if text := getenv("STORE_PORT"); text != "" {
		var err error
		if s.port, err = strconv.Atoi(text); err != nil || s.port < 1 || s.port > 65535 {
			return fmt.Errorf("STORE_PORT %q: a port is needed", text)
		}
	}
	if text := getenv("STORE_LIMIT"); text != "" {
		var err error
		if s.limit, err = strconv.ParseInt(text, 10, 64); err != nil || s.limit < 0 {
			return fmt.Errorf("STORE_LIMIT %q: a number of bytes is needed", text)
		}
	}
	if len(args) != 1 {
		return errors.New("store database or store bucket")
	}
	switch args[0] {
	case "database":
		return database(ctx, s)
	case "bucket":
		return bucket(ctx, s)
	}
	return fmt.Errorf("there is no store %q: database or bucket", args[0])
}
