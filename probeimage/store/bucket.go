package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	_ "github.com/rclone/rclone/backend/local"
	_ "github.com/rclone/rclone/cmd/serve/s3"
	"github.com/rclone/rclone/fs/config"
	"github.com/rclone/rclone/fs/rc"
)

// bucket serves the folder's folders as buckets until ctx is done. It is
// started by rclone's own remote control, the interface it documents for
// programs.
func bucket(ctx context.Context, s settings) error {
	if err := config.SetConfigPath(""); err != nil { // none, and no looking for one
		return err
	}
	start := rc.Calls.Get("serve/start")
	if start == nil {
		return errors.New("rclone has no serve/start")
	}
	_, err := start.Fn(ctx, rc.Params{
		"type": "s3", "fs": s.data, "addr": []string{fmt.Sprintf("127.0.0.1:%d", cmp.Or(s.port, 9000))},
		"auth_key": []string{s.user + "," + s.password},
		// Its cache of folders is for remotes that answer slowly. Where several
		// make a bucket at once, it would lose sight of what one of them puts there.
		"dir_cache_time": "0s",
	})
	if err != nil {
		return fmt.Errorf("the bucket: %w", err)
	}
	<-ctx.Done()
	return nil
}
