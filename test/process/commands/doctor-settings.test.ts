import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { accepting, Disk } from '../../helpers/doctor.js'
import { token } from '../../helpers/remote.js'
import { temporaryFolder } from '../../helpers/temporary.js'

describe('settings that are broken', () => {
  const mend = 'Fix the file, or move it away'

  test.each<[string, string | Buffer, string, string]>([
    ['empty', '', 'are empty', 'Move the file away, or write {"version":1} into it'],
    ['not JSON', '{"version":1,\n  oops}', 'are not JSON: ', mend],
    ['not UTF-8', Buffer.from('{"version":1,"store":"\xff"}', 'latin1'), 'are not UTF-8', mend],
    ['of a wrong type', '{"version":1,"timeout":30}', 'are invalid: timeout must be a string', mend],
    [
      'of a newer version',
      '{"version":2,"stores":[]}',
      'were written by a newer plants (version 2)',
      'Update plants, or set PLANTS_CONFIG_DIR to another directory',
    ],
  ])('because they are %s are named, and all else is looked at', async (_, text, why, hint) => {
    const disk = await Disk.build()
    writeFileSync(disk.file, text)
    const { ill, findings, said } = await disk.examine()
    expect({ ill, said }).toEqual({
      ill: [
        {
          check: 'settings',
          state: 'failed',
          message: expect.stringContaining(`The settings in ${disk.file} ${why}`),
          hint,
        },
        { check: 'stores', state: 'skipped', message: 'the settings cannot be read', hint: 'Fix the settings first' },
      ],
      said: [],
    })
    expect(findings.map(({ check }) => check)).toEqual(expect.arrayContaining(['runtime', 'sqlite', 'proxy']))
  })

  test('because a folder is in their place are named', async () => {
    const disk = await Disk.build()
    rmSync(disk.file)
    mkdirSync(disk.file)
    expect((await disk.examine()).ill).toMatchObject([
      { check: 'settings', state: 'failed', hint: 'Move it away' },
      { state: 'skipped' },
    ])
  })

  test('never show a token', async () => {
    const disk = await Disk.build()
    writeFileSync(disk.file, `{"version":1,"tokens":{"https://plants.example.com":{"token":"${token}","savedAt":5}}}`)
    const { out, err } = await disk.run(['doctor'])
    expect(`${out}${err}`).not.toContain(token)
    writeFileSync(disk.file, `{"version":1,"tokens":{"https://plants.example.com":{"token":"${token}"`)
    const cut = await disk.run(['doctor'])
    expect(`${cut.out}${cut.err}`).not.toContain(token)
  })
})

describe('settings that others can read or replace', () => {
  test('are warned of, once, and with what to do', async () => {
    const disk = await Disk.build({ timeout: '1m' })
    chmodSync(disk.file, 0o644)
    const { code, ill, said } = await disk.examine()
    expect({ code, ill, said }).toEqual({
      code: 0,
      ill: [
        {
          check: 'settings',
          state: 'warning',
          message: `The settings in ${disk.file} are open to others (mode 644)`,
          hint: `Fix it with: chmod 600 ${disk.file}`,
        },
      ],
      said: [],
    })
  })

  test('also when both the file and the folder are', async () => {
    const disk = await Disk.build()
    chmodSync(disk.file, 0o604)
    chmodSync(disk.config, 0o777)
    const { code, ill } = await disk.examine()
    expect({ code, ill }).toEqual({
      code: 0,
      ill: [
        {
          check: 'settings',
          state: 'warning',
          message: expect.stringMatching(/mode 604.*mode 777/),
          hint: expect.stringMatching(/chmod 600 .*chmod 700 /),
        },
      ],
    })
  })
})

describe('a setting that is wrong', () => {
  test.each<[string, Record<string, unknown>, string[], Record<string, string>, string]>([
    [
      'a variable',
      {},
      [],
      { PLANTS_TIMEOUT: 'soon' },
      'PLANTS_TIMEOUT must be a duration such as 30s, 500ms or 2m, but was "soon"',
    ],
    [
      'a saved value',
      { timeout: 'soon' },
      [],
      {},
      'timeout in FILE must be a duration such as 30s, 500ms or 2m, but was "soon"',
    ],
    ['the name of no store', {}, ['--store', 'nope'], {}, 'There is no store named "nope" (from --store)'],
  ])('fails: %s', async (_, saved, flags, env, message) => {
    const disk = await Disk.build(saved)
    Object.assign(disk.env, env)
    const { ill } = await disk.examine(flags)
    expect(ill[0]).toEqual({
      check: message.includes('no store') ? 'store' : 'settings',
      state: 'failed',
      message: message.replace('FILE', disk.file),
      hint: expect.any(String),
    })
  })

  test('of a flag is wrong usage', async () => {
    const { code, err } = await (await Disk.build()).run(['doctor', '--timeout', 'soon'])
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('--timeout must be a duration') })
  })

  test('of all stores is told of once, and hides nothing of the stores', async () => {
    const disk = await Disk.build({
      timeout: 'soon',
      stores: { garden: { address: join(temporaryFolder(), 'none/garden.db') } },
    })
    const messages = (await disk.examine()).ill.map(({ message }) => message)
    expect(messages.filter((message) => message.includes('must be a duration'))).toHaveLength(1)
    expect(messages).toContainEqual(expect.stringMatching(/^There is no directory .* for the store /))
  })

  test.each([
    ['timeout', '2h30m', 'stores.team.timeout in FILE must be a duration such as 30s, 500ms or 2m, but was "2h30m"'],
    ['address', 'ftp://plants.example.com', 'stores.team.address in FILE does not name a store'],
    ['ca-cert', '/nonexistent/ca.pem', 'Could not read /nonexistent/ca.pem: there is no such file'],
  ])('of another store is named with it: %s', async (name, value, message) => {
    const address = await accepting()
    const disk = await Disk.build({
      stores: { team: { address, [name]: value } },
      tokens: { [address]: { token, savedAt: '2026-01-02T03:04:05.678Z' } },
    })
    const { ill } = await disk.examine()
    expect(ill).toEqual([
      {
        check: 'store team',
        state: expect.stringMatching(/failed|warning/),
        message: message.replace('FILE', disk.file),
        hint: expect.any(String),
      },
    ])
  })
})
