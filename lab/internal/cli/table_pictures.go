package cli

import (
	"fmt"
	"os"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/classroom"
	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/picture"
	"persistencelab/lab/internal/report"
	"persistencelab/scenarios"
)

// classPictures gives the pictures of the class page. Attempts hold what came
// back and not what happened, so that they stay small: how containers are
// built comes from the catalogue, and what happened from the teacher's own run.
// Neither is drawn for answers to another version of a scenario's file.
func classPictures(opts tableOptions) (func(*classroom.Scenario) []*picture.Picture, error) {
	var run *experiment.Report
	if opts.run != "" {
		f, err := os.Open(opts.run)
		if err != nil {
			return nil, &usageError{err: err, hint: "lab run --all --format json -o run.json"}
		}
		defer f.Close()
		if run, err = report.Read(f); err != nil {
			return nil, &usageError{err: fmt.Errorf("%s: %w", opts.run, err), hint: "lab run --all --format json -o run.json"}
		}
	}
	return func(s *classroom.Scenario) []*picture.Picture {
		if run != nil && opts.reveal {
			for _, ran := range run.Scenarios {
				if ran.Name == s.Name && ran.Hash == s.Hash {
					return picturesOf(run, ran)
				}
			}
		}
		if own, err := scenarios.Find(s.Name); err == nil && own.Hash == s.Hash {
			return picturesBefore(own)
		}
		return nil
	}, nil
}

// picturesOf are the pictures of a run.
func picturesOf(r *experiment.Report, s experiment.ScenarioSummary) (ps []*picture.Picture) {
	for _, v := range s.Variants {
		if p := picture.Of(r, s.Name, v.Name); p != nil {
			ps = append(ps, p)
		}
	}
	return ps
}

// picturesBefore are the pictures of a scenario that nobody has run.
func picturesBefore(s *scenarios.Scenario) (ps []*picture.Picture) {
	// What the images hold is not drawn.
	image := func(*scenarios.Image) (engine.Image, error) { return engine.Image{Ref: "probe"}, nil }
	jobs, err := plans([]*scenarios.Scenario{s}, experiment.PlanOptions{
		RunID: "picture", Folder: "/", Images: image, Nonce: func() string { return "" },
		Stores: experiment.Stores{Probe: image, Store: func() (engine.Image, error) { return image(nil) }},
	})
	if err != nil {
		return nil
	}
	for _, v := range experiment.Summarize(s, plansOf(jobs, s)).Variants {
		f := picture.Built(v.Containers, false)
		f.Title = v.Name
		ps = append(ps, &picture.Picture{Scenario: s.Name, Variant: v.Name, Frames: []picture.Frame{f}})
	}
	return ps
}
