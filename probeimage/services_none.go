//go:build linux && !stores

package main

import "persistencelab/probeimage/wire"

func dialStore(string) (client, error) { return nil, errNoDrivers }

func isNotFound(error) bool { return false }

func serviceFault(err error) *wire.Error { return fault(err) }
