package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// database serves NATS JetStream until ctx is done.
func database(ctx context.Context, s settings) error {
	ns, err := server.NewServer(&server.Options{
		ServerName: "store", Host: "127.0.0.1", Port: cmp.Or(s.port, 4222),
		Username: s.user, Password: s.password,
		JetStream: true, StoreDir: s.data,
		// Left alone, JetStream syncs every two minutes: acknowledged would
		// not mean durable.
		SyncAlways: true,
		NoSigs:     true, NoSystemAccount: true,
		MaxPayload: server.MAX_PENDING_SIZE, // as large as it can be: a value is one message
	})
	if err != nil {
		return err
	}
	ns.ConfigureLogger()
	go ns.Start()
	if !ns.ReadyForConnections(10 * time.Second) {
		ns.Shutdown()
		return errors.New("the database did not come up; what it says stands above")
	}
	if s.limit > 0 {
		// The server's own limit holds for what streams reserve; this one
		// for what is there.
		err := ns.GlobalAccount().UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{
			"": {MaxMemory: -1, MaxStore: s.limit, MaxStreams: -1, MaxConsumers: -1},
		})
		if err != nil {
			return err
		}
	}
	<-ctx.Done()
	ns.Shutdown()
	ns.WaitForShutdown()
	return nil
}
