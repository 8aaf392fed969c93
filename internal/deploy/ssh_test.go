package deploy_test

import (
	"testing"

	"perflab/internal/deploy"
	"perflab/internal/deploy/deploytest"
)

func TestSSH(t *testing.T) {
	s := startSSHD(t, "127.0.0.1")
	t.Run("suite", func(t *testing.T) {
		deploytest.Run(t, func(t *testing.T) deploy.Runtime { return s.runtime(t) })
	})
	nothingIn(t, s.tmp)
}
