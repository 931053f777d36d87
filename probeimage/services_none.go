//go:build linux && !stores

package main

import (
	"errors"

	"persistencelab/probeimage/wire"
)

// errNoDrivers: the plain probe is small, and carries no store's client.
var errNoDrivers = errors.New("this probe carries no drivers for stores")

func dialStore(string) (client, error) { return nil, errNoDrivers }

func isNotFound(error) bool { return false }

func serviceFault(err error) *wire.Error { return fault(err) }
