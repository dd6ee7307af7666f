import { describe, expect, test } from 'vitest'

import { type ProcessResult, runBash } from '../../helpers/sandbox/process.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'

const message = 'plants: The current directory no longer exists\n'
const hint = '  Change to another directory with cd\n'

/** Runs a command line in a directory that was deleted since the shell has changed to it. */
function runInDeletedFolder(user: Sandbox, line: string): Promise<ProcessResult> {
  return runBash(user, `mkdir gone && cd gone && rmdir ../gone && "$plants" ${line}`, user.env)
}

describe.skipIf(process.platform === 'win32' || process.env['PLANTS_BIN'] !== undefined)(
  'in a current directory that was deleted (needs Node as its runtime)',
  () => {
    test.each([
      'list --store ./x.db',
      'create --file plant.json',
      'import plants.ndjson',
      'export plants.csv',
      'backup plants.bak',
      'restore plants.bak',
      'stores add garden ./x.db',
      'stores init ./x.db',
      'config set ca-cert ca.pem',
      'serve --port 0 --tls-cert cert.pem --tls-key key.pem',
      'serve --socket ./plants.sock',
    ])('plants %s, which uses a relative path, reports the deleted directory', async (line) => {
      const user = new Sandbox()
      await user.run('create --id 1 --name Fern')
      expect(await runInDeletedFolder(user, line)).toEqual({
        code: 2,
        out: '',
        err: message + hint,
      })
    })

    test.each([
      '--help',
      '--version',
      'help create',
      'completion bash',
      'create --id 2 --name Moss',
      'list',
      'export',
      'doctor',
      'stores list',
      'config set timeout 8s',
    ])('plants %s, which uses no relative path, works as usual', async (line) => {
      const user = new Sandbox()
      await user.run('create --id 1 --name Fern')
      expect(await runInDeletedFolder(user, line)).toMatchObject({ code: 0, err: '' })
    })
  },
)
