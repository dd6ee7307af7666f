import { describe } from 'vitest'
import type { DirectStore, Store } from '../../../src/stores/store.js'
import { describeChanges } from './contract/changes.js'
import { describeCounts, describeGroups } from './contract/count.js'
import { describeCreates } from './contract/create.js'
import { describeDeletes } from './contract/delete.js'
import type { OpenEmpty } from './contract/fixtures.js'
import { describeKeys } from './contract/keys.js'
import { describeReads } from './contract/read.js'
import { describeSearches } from './contract/search.js'
import { describeOrder } from './contract/sort.js'
import { describeTokens } from './contract/tokens.js'
import { describeTransactions } from './contract/transactions.js'
import { describeUpdates } from './contract/update.js'

/** What every store must do, wherever it keeps its plants. `open` gives an empty one. */
export function describeStore(name: string, open: OpenEmpty<Store>): void {
  describe(name, () => {
    describeCreates(open)
    describeKeys(open)
    describeUpdates(open)
    describeDeletes(open)
    describeChanges(open)
    describeReads(open)
    describeSearches(open)
    describeCounts(open)
  })
}

/** What a store must do besides that the program opens itself. `open` gives an empty one. */
export function describeDirectStore(name: string, open: OpenEmpty<DirectStore>): void {
  describeStore(name, open)
  describe(name, () => {
    describeOrder(open)
    describeGroups(open)
    describeTransactions(open)
    describeTokens(async () => (await open()).store)
  })
}
