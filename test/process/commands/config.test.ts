import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { gardener } from '../../helpers/gardener.js'
import { terminal } from '../../helpers/terminal.js'

describe('a saved setting holds for other commands:', () => {
  test('on a terminal, too', async () => {
    const user = gardener()
    const session = terminal(['config', 'set', 'timeout', '1m'], user.home, user.env)
    const { code, screen } = await session.ended
    expect({ code, screen: stripVTControlCharacters(screen) }).toEqual({ code: 0, screen: 'Set timeout to 1m\r\n' })
  })
})

describe('config edit', () => {
  const token = { token: 'secret-of-team', savedAt: '2026-01-02T03:04:05.678Z' }

  /** Runs it with an editor that is a shell script. */
  async function edit(script: string) {
    const user = gardener({ timeout: '2m', tokens: { 'https://team.example': token } })
    const editor = join(user.home, 'editor.sh')
    writeFileSync(editor, `#!/bin/sh\n${script}\n`)
    chmodSync(editor, 0o700)
    const { code, screen } = await terminal(['config', 'edit'], user.home, { ...user.env, VISUAL: '', EDITOR: `${editor} -w` }).ended
    return { code, screen: stripVTControlCharacters(screen).replaceAll('\r', '').replaceAll(user.home, 'HOME'), user }
  }

  test('saves what the editor leaves, and shows it no token', async () => {
    const { code, screen, user } = await edit('cat "$2"; sed -i s/2m/3m/ "$2"')
    expect({ code, screen }).toEqual({ code: 0, screen: expect.stringMatching(/"timeout": "2m"[\s\S]*Saved .*settings.json\n$/) })
    expect(screen).not.toContain('secret-of-team')
    expect(user.saved).toMatchObject({ timeout: '3m', tokens: { 'https://team.example': token } })
  })

  test.each([
    ['ends with an error', 'exit 3', 'ended with exit code 3'],
    ['leaves no JSON', 'echo "{" > "$2"', 'The settings in the editor are not JSON'],
    ['leaves a value that a setting cannot have', `sed -i s/2m/banana/ "$2"`, 'timeout must be a duration'],
    ['names a store that is not saved', `echo '{"version":1,"store":"gone"}' > "$2"`, 'There is no store named "gone"'],
    ['leaves what are no settings', `echo '{"version":1,"timeout":5}' > "$2"`, 'timeout must be a string'],
  ])('changes nothing when the editor %s', async (_, script, why) => {
    const { code, screen, user } = await edit(script)
    expect({ code, screen }).toEqual({ code: 2, screen: expect.stringContaining(why) })
    expect(user.saved).toMatchObject({ timeout: '2m' })
  })
})
