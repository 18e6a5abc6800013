"""A ledger of bookings."""


class Ledger:
    def __init__(self):
        self.bookings = []

    def book(self, account, amount):
        """Books an amount on an account of the ledger."""
        if not account:
            raise ValueError("an account has a name")
        self.bookings.append((account, amount))

    def balance(self, account):
        """Returns the balance that an account has after all bookings."""
        return sum(amount for name, amount in self.bookings if name == account)

    def overdrawn(self):
        """Lists accounts whose balance fell below zero."""
        names = {name for name, _ in self.bookings}
        return sorted(name for name in names if self.balance(name) < 0)
