import { expectTypeOf, test } from 'vitest'
import { defineCommand, type OptionValues, parseId } from '../../../src/cli/define-command.js'

test('the values of options have the names and types that the definition says', () => {
  const options = [
    { flags: '--id-from <int64>', description: '', parse: parseId },
    { flags: '--map <fields>', description: '' },
    { flags: '--yes', description: '' },
    { flags: '--if-exists <what>', description: '', choices: ['error', 'skip'], default: 'error' },
    { flags: '--no-input', description: '' },
    { flags: '-v, --verbose', description: '' },
  ] as const
  type Values = OptionValues<typeof options>
  expectTypeOf<keyof Values>().toEqualTypeOf<'idFrom' | 'map' | 'yes' | 'ifExists' | 'input' | 'verbose'>()
  expectTypeOf<Values['idFrom']>().toEqualTypeOf<bigint | undefined>()
  expectTypeOf<Values['map']>().toEqualTypeOf<string | undefined>()
  expectTypeOf<Values['yes']>().toEqualTypeOf<boolean | undefined>()
  expectTypeOf<Values['ifExists']>().toEqualTypeOf<'error' | 'skip'>()
  expectTypeOf<Values['input']>().toEqualTypeOf<boolean | undefined>()
})

test('a command gets its arguments and options with their types', () => {
  const base = { name: 'get', description: '' }
  defineCommand({
    ...base,
    arguments: [
      { name: '<id>', description: '', parse: parseId },
      { name: '<shell>', description: '' },
    ],
    options: [{ flags: '--yes', description: '' }],
    run: async ({ args, flags }) => {
      expectTypeOf(args).toEqualTypeOf<[bigint, string]>()
      expectTypeOf(flags.yes).toEqualTypeOf<boolean | undefined>()
      expectTypeOf(flags.store).toEqualTypeOf<string | undefined>()
    },
  })
  defineCommand({
    ...base,
    arguments: [{ name: '[files...]', description: '' }],
    run: async ({ args }) => {
      expectTypeOf(args).toEqualTypeOf<string[]>()
    },
  })
})
