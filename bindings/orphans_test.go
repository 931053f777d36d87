package bindings

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Only the monitors of the run's containers are ended, with what they look
// after.
func TestEndOrphans(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Podman's monitors are on another machine")
	}
	monitor := func(program, name string) *exec.Cmd {
		cmd := exec.Command("bash", "-c", fmt.Sprintf(`exec -a %s sh -c 'sleep 60 & wait' sh -c id -n %s`, program, name))
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			for _, child := range children(cmd.Process.Pid) {
				kill(child)
			}
			_ = cmd.Process.Kill()
		})
		require.Eventually(t, func() bool { return len(children(cmd.Process.Pid)) == 1 }, 5*time.Second, 5*time.Millisecond)
		return cmd
	}
	mine := monitor("/usr/bin/conmon", "lab-5eed0001-1-app")
	child := children(mine.Process.Pid)[0]
	others := []*exec.Cmd{monitor("conmon", "lab-5eed0002-1-app"), monitor("conmon", "web"), monitor("podman", "lab-5eed0001-1-app")}

	began := time.Now()
	EndOrphans("lab-5eed0001-")
	_ = mine.Wait() // killed, or at its own end because its child was
	require.Less(t, time.Since(began), 30*time.Second)
	require.Eventually(t, func() bool {
		words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child)) // of a dead one that nobody waited for: nothing
		return len(words) == 0
	}, 5*time.Second, 5*time.Millisecond)
	for _, cmd := range others {
		require.Len(t, children(cmd.Process.Pid), 1, cmd.Args)
	}
}
