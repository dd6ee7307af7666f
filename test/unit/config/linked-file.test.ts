import { lstatSync, mkdirSync, readdirSync, readlinkSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { modeOf } from '../../helpers/settings-file.js'
import { answer, printed, World } from '../../helpers/world.js'

describe('a settings file that is a link', () => {
  const shapes: [string, string][] = [
    ['relative', '../dotfiles/plants.json'],
    ['absolute', '/HOME/dotfiles/plants.json'],
    ['a link to a link', 'step'],
  ]

  test.each(shapes)('%s, stays one, and what it leads to is changed', async (_, link) => {
    const { user, target } = linked(link)
    writeFileSync(target, '{"version":1,"output":"json"}', { mode: 0o600 })
    expect(await user.run('config set timeout 1m')).toEqual(answer({ name: 'timeout', value: '1m' }))
    expect(user.saved).toEqual({ version: 1, output: 'json', timeout: '1m' })
    expect(placesOf(user, target)).toEqual(linkedPlaces)
  })

  test.each(shapes)('%s, and leads nowhere, stays one, and the file is made there', async (_, link) => {
    const { user, target } = linked(link)
    expect(await user.run('config get timeout')).toEqual(printed('30s\n'))
    expect(await user.run('config set timeout 1m')).toEqual(answer({ name: 'timeout', value: '1m' }))
    expect(user.saved).toEqual({ version: 1, timeout: '1m' })
    expect(placesOf(user, target)).toEqual(linkedPlaces)
  })

  const linkedPlaces = { areLinks: [true, true], isFile: true, mode: '600', left: [] }

  function linked(link: string): { user: World; target: string } {
    const user = new World()
    for (const folder of [user.config, join(user.home, 'dotfiles')]) mkdirSync(folder, { mode: 0o700 })
    symlinkSync(link.replace('/HOME', user.home), user.file)
    symlinkSync('../dotfiles/plants.json', join(user.config, 'step'))
    return { user, target: join(user.home, 'dotfiles/plants.json') }
  }

  function placesOf(user: World, target: string) {
    const names = [...readdirSync(user.config), ...readdirSync(join(user.home, 'dotfiles'))]
    return {
      areLinks: [user.file, join(user.config, 'step')].map((path) => lstatSync(path).isSymbolicLink()),
      isFile: lstatSync(target).isFile(),
      mode: modeOf(target),
      left: names.filter((name) => !['settings.json', 'step', 'plants.json'].includes(name) && !name.endsWith('.lock')),
    }
  }

  test('in a folder that is a link, dangling, leads where the system says', async () => {
    const user = new World()
    mkdirSync(join(user.home, 'dotfiles/sub'), { recursive: true })
    symlinkSync('dotfiles/sub', user.config)
    symlinkSync('../plants.json', user.file)
    expect((await user.run('config set timeout 1m')).code).toBe(0)
    expect(await user.run('config get timeout')).toEqual(printed('1m\n'))
    expect(realpathSync(user.file)).toBe(join(user.home, 'dotfiles/plants.json'))
    expect(readdirSync(user.home)).not.toContain('plants.json')
  })

  test('to nothing is like no file; where nothing can be made, nothing is saved', async () => {
    const user = new World()
    mkdirSync(user.config)
    symlinkSync('../gone/plants.json', user.file)
    expect(await user.run('config get timeout')).toEqual(printed('30s\n'))
    const { code, err } = await user.run('config set timeout 1m')
    expect({ code, err }).toEqual({
      code: 74,
      err: expect.stringMatching(/could not be changed: .*(folder|directory)/),
    })
    expect(readlinkSync(user.file)).toBe('../gone/plants.json')
  })
})
