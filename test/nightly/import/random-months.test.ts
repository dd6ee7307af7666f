import { test } from 'vitest'
import { gardens, importMonths, stopImport } from '../../commands/import/month-steps.js'
import { check } from '../../helpers/expect/arbitraries.js'
import { createDatabase } from '../../helpers/postgres/database.js'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'

test('random lists that come again are imported into a file as a model says, in a hundred months', async () => {
  await check(40, [gardens], async (garden) => {
    const user = new ImportSandbox()
    const stop = stopImport.bind(undefined, user)
    await importMonths(user, garden, { stop, isService: false })
  })
})

test('random lists that come again are imported into a database as a model says', async () => {
  await check(4, [gardens], async (garden) => {
    const user = new ImportSandbox()
    const { url, env } = await createDatabase()
    Object.assign(user.env, env, { PLANTS_STORE: url })
    const stop = stopImport.bind(undefined, user)
    await importMonths(user, garden, { stop, isService: false })
  })
})

test('random lists that come again are imported as a model says, although processes are killed', async () => {
  await check(4, [gardens], async (garden) => {
    const user = new ImportSandbox()
    const stop = async (words: string[], steps: number, input?: string) => {
      const limits = { timeout: 100 + steps * 20, killSignal: 'SIGKILL' } as const
      await user.start(['import', ...words], { ...limits, ...(input !== undefined && { input }) })
    }
    await importMonths(user, garden, { stop, isService: false })
  })
})
