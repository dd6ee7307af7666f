import { chownSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Sandbox } from '../helpers/sandbox/sandbox.js'

// The same of --rejects is in commands/import.

test.skipIf(process.getuid?.() !== 0).each(['export', 'backup'])(
  'plants %s does not write through a link to a file of another user (needs root)',
  async (command) => {
    const user = new Sandbox()
    await user.run('create --id 1 --name Fern')
    user.write('new', '')
    user.write('shared/x', '')
    symlinkSync('../new', join(user.home, 'shared/link.ndjson'))
    const target = join(user.home, 'new')
    chownSync(target, 1234, 1234)
    const err = expect.stringContaining('belongs to another user (uid 1234)')
    const result = await user.run(`${command} shared/link.ndjson --yes`)
    expect(result).toEqual({ code: 2, out: '', err })
    expect([user.read('new'), statSync(target).uid]).toEqual(['', 1234])
  },
)
