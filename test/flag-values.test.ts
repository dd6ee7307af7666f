import { expectTypeOf, test } from 'vitest'
import type { FlagValues } from '../src/cli/spec.js'

test('the values of flags have the names and types that their terms say', () => {
  const flags = [
    { term: '--id-from <int64>', meaning: '' },
    { term: '--yes', meaning: '' },
    { term: '--if-exists <what>', meaning: '', preset: 'error' },
    { term: '--journal <path>', meaning: '' },
    { term: '--no-journal', meaning: '' },
    { term: '-v, --verbose', meaning: '' },
  ] as const
  expectTypeOf<keyof FlagValues<typeof flags>>().toEqualTypeOf<'idFrom' | 'yes' | 'ifExists' | 'journal' | 'verbose'>()
  expectTypeOf<FlagValues<typeof flags>['idFrom']>().toEqualTypeOf<string | undefined>()
  expectTypeOf<FlagValues<typeof flags>['yes']>().toEqualTypeOf<boolean | undefined>()
  expectTypeOf<FlagValues<typeof flags>['ifExists']>().toEqualTypeOf<string>()
  expectTypeOf<FlagValues<typeof flags>['journal']>().toEqualTypeOf<string | false | undefined>()
})
