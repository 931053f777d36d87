// Package matrix is every mount kind × every event: each cell is one scenario
// made by a program, carried out and judged like any other.
//
// It promises that a cell is what a run showed: where an event does not apply
// to a kind, the write at least was tried; a cell that could not be observed
// is unknown, one that this engine can't have is skipped with what it needs.
// The names of kinds and events are those of the truth table the tests hold
// the lab against (testdata/cells.csv; /dev/shm across a restart of 5.4.2 is
// not-deterministic in it since a busy host has lost one).
//
// Cells stay small: the evidence of each, its record, goes to a file as it
// comes in, so that memory does not grow with it.
package matrix
