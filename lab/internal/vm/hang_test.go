package vm

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A machine that never answers is given up, after two tries, with what its
// console ends with. This one halts in a panic instead of restarting.
func TestVMHangs(t *testing.T) {
	if os.Getenv("LAB_TEST_VM") == "" {
		t.Skip("needs QEMU and a kernel (" + Setup + "): LAB_TEST_VM is not set")
	}
	ctx := context.Background()
	cache := os.Getenv("LAB_CACHE_DIR")
	if cache == "" {
		dir, err := os.UserCacheDir()
		require.NoError(t, err)
		cache = filepath.Join(dir, "persistencelab")
	}
	h, err := Find(ctx, Options{CacheDir: cache, Append: "panic=0 rdinit=/no-such-init root=none", BootTime: 10 * time.Second})
	require.NoError(t, err)
	require.NoError(t, h.Prepare(ctx, t.TempDir()))
	m, err := h.NewMachine(ctx, Spec{Name: "hangs", Folder: t.TempDir()})
	require.NoError(t, err)
	defer m.Close()
	err = m.Start(ctx)
	var boot *BootError
	require.ErrorAs(t, err, &boot)
	require.Equal(t, "the machine did not answer within 10s (at two tries)", boot.Reason)
	require.NotEmpty(t, boot.Console)
	require.Contains(t, boot.Console[0], "Kernel panic - not syncing")
	require.False(t, m.On())
	require.Zero(t, m.PID())
}
