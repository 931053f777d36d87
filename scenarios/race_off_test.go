//go:build !race

package scenarios_test

// slowdown is what the race detector costs at most.
const slowdown = 1
