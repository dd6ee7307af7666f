/**
 * What to do about an error, where that takes an option, a command or a variable: a code with the data of its sentence,
 * which the command line has in `src/cli/hints.ts`. A service has the same errors, and none of these words.
 */
interface AdviceData {
  // Of a store.
  askForRights: { rights: string }
  awaitDatabase: unknown
  awaitService: unknown
  awaitStore: unknown
  checkDisk: unknown
  chooseAnotherId: unknown
  countFewer: unknown
  createOnServer: { address: string; isOneOfSeveral: boolean }
  leaveOutDesc: unknown
  leaveOutSort: unknown
  lookAtPlant: { id: bigint; store: string }
  nameBackup: unknown
  permitStore: unknown
  putOnLocalDisk: unknown
  raiseSizeLimit: { isResumable?: boolean }
  repeatCreate: { id: bigint; key: string; isSupported: boolean }
  replaceConnectTimeout: unknown
  runAtService: unknown
  saveToken: unknown
  startService: { port: string | undefined }
  trustIssuer: unknown
  useAnotherStore: unknown
  useNewAddress: unknown
  useOwner: unknown
  // Of a file that is read or written.
  chooseColumns: unknown
  chooseFormat: unknown
  chooseIdColumn: unknown
  chooseOneColumn: { field: string }
  chooseSheet: unknown
  correctMap: unknown
  exportFewer: unknown
  importAlone: unknown
  importArray: { filter: string; source: string }
  leaveOutSheet: unknown
  nameEncoding: { encoding: string }
  readAsNdjson: unknown
  replaceFile: unknown
  restoreRejects: unknown
  splitObjects: { source: string }
  tryWindowsEncoding: unknown
  useAnotherRejectsFile: { or?: string }
  useAsStore: unknown
  writeToStdout: { format: string }
  // Of a directory of this user.
  setFolder: { folder: 'data' | 'config' | 'log' }
  setHome: unknown
  setStateFolder: unknown
}

export type AdviceCode = keyof AdviceData

export type Advice<Code extends AdviceCode = AdviceCode> = { [C in Code]: { code: C } & AdviceData[C] }[Code]

/** What to do next: a sentence in the words of the domain, or a code. */
export type Hint = string | Advice
