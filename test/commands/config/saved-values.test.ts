import { expect, test } from 'vitest'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'

// A value in the settings file that cannot be used: which one it is, and which command changes it.

test.each([
  {
    saved: { store: 'gone' },
    message: 'store in FILE names a store, but none is called gone',
    hint: 'Choose another store with: plants stores use NAME',
  },
  {
    saved: { store: 'mysql:garden' },
    message: 'store in FILE does not name a store',
    hint: 'Change it with: plants config set store ADDRESS',
  },
  {
    saved: { store: 'team', stores: { team: { address: 'http://' } } },
    message: 'stores.team.address in FILE is not a valid URL',
    hint: 'Change it with: plants stores add team ADDRESS --replace',
  },
  {
    saved: { store: 'team', stores: { team: { address: './a.db', timeout: 'soon' } } },
    message:
      'stores.team.timeout in FILE must be a duration such as 500ms, 30s or 2m, up to 24d, but was "soon"',
    hint: 'Change it with: plants stores add team ADDRESS --replace',
  },
  {
    saved: { timeout: 'soon' },
    message:
      'timeout in FILE must be a duration such as 500ms, 30s or 2m, up to 24d, but was "soon"',
    hint: 'Change it with: plants config set timeout VALUE',
  },
  {
    saved: { output: 'yaml' },
    message: 'output in FILE must be one of text, json, ndjson, csv, tsv, but was "yaml"',
    hint: 'Change it with: plants config set output VALUE',
  },
])('the error of $saved names the command that changes it', async ({ saved, message, hint }) => {
  const user = new Sandbox()
  user.save(saved)
  const { code, err } = await user.run('list')
  expect([code, err]).toEqual([2, `plants: ${message.replace('FILE', user.file)}\n  ${hint}\n`])
})

test.each([
  ['stores use local', { store: 'gone' }],
  ['config set store ./a.db', { store: 'mysql:garden' }],
  ['config set timeout 1m', { timeout: 'soon' }],
  ['config set output json', { output: 'yaml' }],
  ['stores add team ./a.db --replace', { store: 'team', stores: { team: { address: 'http://' } } }],
])('plants %s changes the saved value %j', async (line, saved) => {
  const user = new Sandbox()
  user.save(saved)
  expect(await user.run(line)).toMatchObject({ code: 0 })
  const { err } = await user.run('create --id 1 --name Fern')
  expect(err).not.toContain(' in ')
})
