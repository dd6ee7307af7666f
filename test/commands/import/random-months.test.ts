import { join } from 'node:path'
import { expect, test } from 'vitest'
import { check } from '../../helpers/expect/arbitraries.js'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { serveFile, token } from '../../helpers/scripted-server/service.js'
import { gardens, importMonths, stopImport } from './month-steps.js'

test('random lists that come again are imported into a file as a model says', async () => {
  await check(5, [gardens], async (garden) => {
    const user = new ImportSandbox()
    const stop = stopImport.bind(undefined, user)
    await importMonths(user, garden, { stop, isService: false })
  })
})

test('random lists that come again are imported into a service as a model says', async () => {
  await check(1, [gardens], async (garden) => {
    const user = new ImportSandbox()
    const url = await serveFile(join(user.home, 'garden.db'))
    Object.assign(user.env, { PLANTS_TOKEN: token, PLANTS_STORE: url })
    await importMonths(user, garden, { stop: undefined, isService: true })
  })
})

test('two lists without a common plant are imported at once, and again, and nothing is twice', async () => {
  const user = new ImportSandbox()
  await user.run('create --id 3 --name Oak')
  const padding = ' '.repeat(262_144)
  const names = ['Ahorn', 'Weide', 'Iris', 'Fern'].flatMap((name) => [name, name, `${name} 2`])
  const writeList = (file: string, ending: string) =>
    user.write(file, `name\n${names.map((name) => `${padding}${name}${ending}\n`).join('')}`)
  const commands = ['north', 'south'].map((file) => `${writeList(file, ` ${file}`)} --by-name`)
  const runBoth = () =>
    Promise.all(commands.map((command) => user.import(`${command} --format csv`)))
  for (const { code } of await runBoth()) expect(code).toBeOneOf([0, 6])
  for (const command of commands) await user.import(`${command} --format csv`)
  const again = await runBoth()
  expect(again).toMatchObject([
    { code: 0, skipped: 12 },
    { code: 0, skipped: 12 },
  ])
  expect((await user.run('count')).out).toBe('25\n')
})
